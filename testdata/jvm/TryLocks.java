import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** Attempts to take locks that fail all the time, because others take and release them in quick succession. */
public class TryLocks {
    private static final ReentrantLock plain = new ReentrantLock();
    private static final ReentrantLock fair = new ReentrantLock(true);
    private static final ReentrantReadWriteLock both = new ReentrantReadWriteLock();
    private static final int ROUNDS = 30;
    private static int guarded;
    private static int failed;

    private static void use(Lock lock, boolean isTimed) throws InterruptedException {
        if (isTimed ? lock.tryLock(1, TimeUnit.MICROSECONDS) : lock.tryLock()) {
            try {
                plain.lock();
                try {
                    guarded++;
                } finally {
                    plain.unlock();
                }
            } finally {
                lock.unlock();
            }
        } else {
            plain.lock();
            try {
                failed++;
            } finally {
                plain.unlock();
            }
        }
    }

    private static void work() {
        try {
            for (int i = 0; i < ROUNDS; i++) {
                use(plain, i % 3 == 0);
                use(fair, i % 2 == 0);
                use(both.writeLock(), i % 5 == 0);
                use(both.readLock(), i % 7 == 0);
                both.readLock().lock();
                // Whoever shares the lock cannot have it alone, whatever others do.
                if (both.writeLock().tryLock()) {
                    throw new AssertionError("a reader became a writer");
                }
                both.readLock().unlock();
            }
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(TryLocks::work);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(guarded + failed == 4 * 4 * ROUNDS);
    }
}
