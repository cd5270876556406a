/** Two threads add to a counter without a lock. */
public class RacyCounter {
    static int count;

    public static void main(String[] arguments) throws InterruptedException {
        Runnable add = () -> count++;
        Thread one = new Thread(add);
        Thread two = new Thread(add);
        one.start();
        two.start();
        one.join();
        two.join();
    }
}
