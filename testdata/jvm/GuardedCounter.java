/** Two threads add to counters, each guarded in another way. */
public class GuardedCounter {
    private static int inBlock;
    private static int inMethod;
    private static int underLock;
    private static final Object monitor = new Object();
    private static final java.util.concurrent.locks.ReentrantLock lock = new java.util.concurrent.locks.ReentrantLock();

    private static synchronized void add() {
        inMethod++;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Runnable work = () -> {
            synchronized (monitor) {
                inBlock++;
            }
            add();
            lock.lock();
            try {
                underLock++;
            } finally {
                lock.unlock();
            }
        };
        Thread one = new Thread(work);
        Thread two = new Thread(work);
        one.start();
        two.start();
        one.join();
        two.join();
        if (inBlock + inMethod + underLock != 6) {
            throw new AssertionError();
        }
    }
}
