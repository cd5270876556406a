/** The same under a third monitor. */
public class LockOrderGuarded {
    private static final Object gate = new Object();
    private static final Object left = new Object();
    private static final Object right = new Object();
    private static int count;

    public static void main(String[] arguments) throws InterruptedException {
        Thread one = new Thread(() -> {
            synchronized (gate) {
                synchronized (left) {
                    synchronized (right) {
                        count++;
                    }
                }
            }
        });
        Thread two = new Thread(() -> {
            synchronized (gate) {
                synchronized (right) {
                    synchronized (left) {
                        count++;
                    }
                }
            }
        });
        one.start();
        two.start();
        one.join();
        two.join();
    }
}
