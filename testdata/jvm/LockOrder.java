/** Two threads take two monitors in opposite orders, one after the other. */
public class LockOrder {
    private static final Object left = new Object();
    private static final Object right = new Object();
    private static int count;

    public static void main(String[] arguments) throws InterruptedException {
        Thread one = new Thread(() -> {
            synchronized (left) {
                synchronized (right) {
                    count++;
                }
            }
        });
        Thread two = new Thread(() -> {
            synchronized (right) {
                synchronized (left) {
                    count++;
                }
            }
        });
        one.start();
        // Not a wait that orders anything: the two just happen not to meet.
        Thread.sleep(300);
        two.start();
        one.join();
        two.join();
    }
}
