/** Two threads that share three variables: Roşu and Sen's first example. */
public class Xyz {
    static int x = -1;
    static int y;
    static int z;

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static void one() {
        x++;
        pause(200);
        y = x + 1;
    }

    static void two() {
        pause(100);
        z = x + 1;
        pause(200);
        x++;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread first = new Thread(Xyz::one, "T1");
        Thread second = new Thread(Xyz::two, "T2");
        first.start();
        second.start();
        first.join();
        second.join();
        System.out.println("x " + x + ", y " + y + ", z " + z);
    }
}
