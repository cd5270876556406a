import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** Everything that tasks of a pool share is handed over properly. */
public class PoolAndFutures {
    private static final class Box {
        int value;
    }

    public static void main(String[] arguments) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2);
        Box before = new Box();
        before.value = 1;
        List<Future<Box>> results = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            int k = i;
            results.add(pool.submit(() -> {
                Box box = new Box();
                box.value = before.value + k;
                return box;
            }));
        }
        int sum = 0;
        for (Future<Box> result : results) {
            sum += result.get().value++;
        }
        LinkedBlockingQueue<Box> queue = new LinkedBlockingQueue<>();
        CountDownLatch latch = new CountDownLatch(1);
        Semaphore semaphore = new Semaphore(0);
        Box[] late = {new Box(), new Box()};
        pool.execute(() -> {
            Box box = new Box();
            box.value = 10;
            queue.add(box);
            late[0].value = 20;
            latch.countDown();
            late[1].value = 30;
            semaphore.release();
        });
        sum += queue.take().value++;
        latch.await();
        sum += late[0].value++;
        semaphore.acquire();
        sum += late[1].value++;
        Box last = new Box();
        pool.execute(() -> last.value = 40);
        pool.shutdown();
        if (!pool.awaitTermination(60, TimeUnit.SECONDS)) {
            throw new AssertionError();
        }
        sum += last.value++;
        // The pool behind this one is not called directly.
        ExecutorService single = Executors.newSingleThreadExecutor();
        Box alone = new Box();
        single.execute(() -> alone.value = 50);
        single.shutdown();
        if (!single.awaitTermination(60, TimeUnit.SECONDS)) {
            throw new AssertionError();
        }
        sum += alone.value++;
        if (sum != 10 + 60 + 40 + 50) {
            throw new AssertionError(sum);
        }
    }
}
