public class Planted {
    static int planted;

    static void add() {
        planted++;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread one = new Thread(Planted::add);
        Thread two = new Thread(Planted::add);
        one.start();
        two.start();
        one.join();
        two.join();
        System.out.println(planted);
    }
}
