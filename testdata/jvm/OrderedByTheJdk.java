import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.stream.IntStream;

/** Hand-overs that the JDK makes, each of them in order. */
public class OrderedByTheJdk {
    private static final class Box {
        int value;
    }

    private static final class Sum extends RecursiveTask<Integer> {
        private static final long serialVersionUID = 1;
        private final transient Box[] boxes;
        private final int from;
        private final int to;

        Sum(Box[] boxes, int from, int to) {
            this.boxes = boxes;
            this.from = from;
            this.to = to;
        }

        @Override
        protected Integer compute() {
            if (to - from == 1) {
                return boxes[from].value++;
            }
            int middle = (from + to) / 2;
            Sum left = new Sum(boxes, from, middle);
            left.fork();
            int right = new Sum(boxes, middle, to).compute();
            return left.join() + right;
        }
    }

    public static void main(String[] arguments) throws Exception {
        Box[] boxes = new Box[8];
        for (int i = 0; i < boxes.length; i++) {
            boxes[i] = new Box();
            boxes[i].value = i;
        }
        int sum = new ForkJoinPool(2).invoke(new Sum(boxes, 0, boxes.length));
        for (Box box : boxes) {
            sum += box.value;
        }
        Box later = new Box();
        later.value = 5;
        sum += CompletableFuture.supplyAsync(() -> {
            later.value++;
            return later;
        }).thenApply(box -> box.value++).get();
        sum += later.value;
        IntStream.range(0, boxes.length).parallel().forEach(i -> boxes[i].value = i);
        for (Box box : boxes) {
            sum += box.value;
        }
        ConcurrentHashMap<String, Box> map = new ConcurrentHashMap<>();
        AtomicReference<Box> reference = new AtomicReference<>();
        CyclicBarrier barrier = new CyclicBarrier(2);
        ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        Box[] result = new Box[1];
        Thread other = new Thread(() -> {
            map.computeIfAbsent("a", k -> new Box()).value = 7;
            Box box = new Box();
            box.value = 8;
            map.put("b", box);
            Box published = new Box();
            published.value = 9;
            reference.set(published);
            Box met = new Box();
            met.value = 10;
            lock.writeLock().lock();
            result[0] = met;
            lock.writeLock().unlock();
            try {
                barrier.await();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
        other.start();
        Box found;
        while ((found = map.get("b")) == null) {
            Thread.onSpinWait();
        }
        sum += found.value++;
        while ((found = reference.get()) == null) {
            Thread.onSpinWait();
        }
        sum += found.value++;
        barrier.await();
        lock.readLock().lock();
        sum += result[0].value;
        lock.readLock().unlock();
        sum += map.get("a").value++;
        other.join();
        if (sum != 28 + 36 + 6 + 7 + 28 + 8 + 9 + 10 + 7) {
            throw new AssertionError(sum);
        }
    }
}
