import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** A map that is changed under a lock that readers share. */
public class WritingReaders {
    private static final ReadWriteLock LOCK = new ReentrantReadWriteLock();
    private static final Map<String, Integer> MAP = new HashMap<>();

    private static void put() {
        LOCK.readLock().lock();
        try {
            MAP.put("key", 1);
        } finally {
            LOCK.readLock().unlock();
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread one = new Thread(WritingReaders::put);
        Thread two = new Thread(() -> {
            try {
                // Later in every test so far.
                Thread.sleep(300);
            } catch (InterruptedException e) {
                return;
            }
            put();
        });
        one.start();
        two.start();
        one.join();
        two.join();
    }
}
