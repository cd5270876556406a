import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/** Tasks of a pool that share a map, a counter and a lock, and compute in between. */
public class Tasks {
    private static long compute(long seed) {
        long x = seed | 1;
        for (int i = 0; i < 2000; i++) {
            x ^= x << 13;
            x ^= x >>> 7;
            x ^= x << 17;
        }
        return x;
    }

    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        ConcurrentHashMap<Long, Long> map = new ConcurrentHashMap<>();
        AtomicLong sum = new AtomicLong();
        ReentrantLock lock = new ReentrantLock();
        List<Long> kept = new ArrayList<>();
        List<Future<Long>> results = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            long seed = i;
            results.add(pool.submit(() -> {
                long x = compute(seed);
                map.merge(x & 255, 1L, Long::sum);
                sum.addAndGet(x);
                lock.lock();
                try {
                    if ((x & 1023) == 0) {
                        kept.add(x);
                    }
                } finally {
                    lock.unlock();
                }
                return x;
            }));
        }
        for (Future<Long> result : results) {
            sum.addAndGet(-result.get());
        }
        pool.shutdown();
        if (sum.get() != 0) {
            throw new AssertionError();
        }
    }
}
