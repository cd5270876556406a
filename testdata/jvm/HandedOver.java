import java.util.Arrays;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CountedCompleter;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Exchanger;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Phaser;
import java.util.concurrent.RecursiveTask;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;

/** Whatever one thread leaves to another here is handed over by an object of the JDK. */
public class HandedOver {
    static final class Box {
        int value;

        int next() {
            return ++value;
        }
    }

    interface Part {
        void run() throws Exception;
    }

    private static void check(boolean isRight) {
        if (!isRight) {
            throw new AssertionError();
        }
    }

    private static Thread start(Part part) {
        Thread thread = new Thread(() -> {
            try {
                part.run();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
        });
        thread.start();
        return thread;
    }

    static final class Sum extends RecursiveTask<Box> {
        private static final long serialVersionUID = 1;
        private final transient int[] numbers;
        private final int from;
        private final int to;

        Sum(int[] numbers, int from, int to) {
            this.numbers = numbers;
            this.from = from;
            this.to = to;
        }

        @Override
        protected Box compute() {
            Box box = new Box();
            if (to - from < 3) {
                for (int i = from; i < to; i++) {
                    box.value += numbers[i];
                }
                return box;
            }
            int middle = (from + to) / 2;
            Sum left = new Sum(numbers, from, middle);
            Sum right = new Sum(numbers, middle, to);
            left.fork();
            box.value = right.invoke().next() - 1 + left.join().next() - 1;
            return box;
        }
    }

    static final class Parts extends CountedCompleter<Void> {
        private static final long serialVersionUID = 1;
        private final transient Box[] boxes;
        private final int from;
        private final int to;
        int total;

        Parts(CountedCompleter<?> parent, Box[] boxes, int from, int to) {
            super(parent);
            this.boxes = boxes;
            this.from = from;
            this.to = to;
        }

        @Override
        public void compute() {
            if (to - from > 1) {
                int middle = (from + to) / 2;
                setPendingCount(2);
                new Parts(this, boxes, from, middle).fork();
                new Parts(this, boxes, middle, to).fork();
            } else {
                boxes[from].next();
            }
            tryComplete();
        }

        @Override
        public void onCompletion(CountedCompleter<?> caller) {
            for (int i = from; i < to; i++) {
                total += boxes[i].value;
            }
        }
    }

    private static void futures() throws Exception {
        Box box = new Box();
        CompletableFuture<Box> source = new CompletableFuture<>();
        CompletableFuture<Box> chain = source.thenApply(b -> {
            b.next();
            return b;
        }).thenCompose(b -> CompletableFuture.supplyAsync(() -> {
            b.next();
            return b;
        })).handle((b, e) -> {
            b.next();
            return b;
        });
        start(() -> {
            box.next();
            source.complete(box);
        });
        check(chain.get().next() == 5);
        Box left = new Box();
        Box right = new Box();
        CompletableFuture<Integer> both = CompletableFuture.supplyAsync(left::next)
                .thenCombine(CompletableFuture.supplyAsync(right::next), (a, b) -> left.next() + right.next());
        check(both.join() == 4 && left.next() + right.next() == 6);
        Box[] boxes = {new Box(), new Box(), new Box()};
        CompletableFuture<?>[] all = Arrays.stream(boxes).map(b -> CompletableFuture.runAsync(b::next)).toArray(CompletableFuture<?>[]::new);
        CompletableFuture.allOf(all).join();
        check(boxes[0].next() + boxes[1].next() + boxes[2].next() == 6);
        Box failing = new Box();
        CompletableFuture<Integer> failed = CompletableFuture.supplyAsync(() -> {
            failing.next();
            throw new IllegalStateException();
        });
        check(failed.exceptionally(e -> failing.next()).join() == 2);
        while (!failed.isDone()) {
            Thread.onSpinWait();
        }
        check(failing.next() == 3);
        Box timed = new Box();
        timed.next();
        CompletableFuture.delayedExecutor(1, TimeUnit.MILLISECONDS).execute(timed::next);
        CompletableFuture<Box> late = new CompletableFuture<Box>().completeOnTimeout(new Box(), 2, TimeUnit.MILLISECONDS);
        check(late.join().next() == 1);
    }

    private static void tasks() throws Exception {
        int[] numbers = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        check(ForkJoinPool.commonPool().invoke(new Sum(numbers, 0, numbers.length)).next() == 46);
        ForkJoinPool pool = new ForkJoinPool(2);
        check(pool.submit(new Sum(numbers, 0, numbers.length)).get().next() == 46);
        Box[] boxes = {new Box(), new Box(), new Box(), new Box()};
        Parts parts = new Parts(null, boxes, 0, boxes.length);
        pool.invoke(parts);
        check(parts.total == 4 && boxes[3].next() == 2);
        Box quiet = new Box();
        pool.execute(quiet::next);
        check(pool.awaitQuiescence(60, TimeUnit.SECONDS) && quiet.next() == 2);
        pool.execute(quiet::next);
        pool.shutdown();
        check(pool.awaitTermination(60, TimeUnit.SECONDS) && quiet.next() == 4);
        Box[] streamed = {new Box(), new Box(), new Box(), new Box(), new Box(), new Box(), new Box(), new Box()};
        check(IntStream.range(0, 8).parallel().map(i -> streamed[i].next()).sum() == 8 && streamed[5].next() == 2);
        Box ordered = new Box();
        IntStream.range(0, 8).parallel().forEachOrdered(i -> ordered.value = i);
        check(ordered.value == 7);
    }

    private static void barriers() throws Exception {
        Box[] boxes = {new Box(), new Box()};
        Box sum = new Box();
        CyclicBarrier barrier = new CyclicBarrier(2, () -> sum.value += boxes[0].value + boxes[1].value);
        Thread[] threads = new Thread[2];
        for (int i = 0; i < 2; i++) {
            int k = i;
            threads[i] = start(() -> {
                for (int round = 0; round < 2; round++) {
                    boxes[k].next();
                    barrier.await();
                    check(sum.value >= 2);
                    barrier.await();
                }
            });
        }
        threads[0].join();
        threads[1].join();
        Box phased = new Box();
        Phaser phaser = new Phaser(2) {
            @Override
            protected boolean onAdvance(int phase, int parties) {
                phased.next();
                return false;
            }
        };
        Box other = new Box();
        start(() -> {
            other.next();
            phaser.arrive();
        });
        phaser.arriveAndAwaitAdvance();
        check(phased.next() + other.next() == 4);
        Exchanger<Box> exchanger = new Exchanger<>();
        start(() -> {
            Box mine = new Box();
            mine.next();
            exchanger.exchange(mine).next();
        });
        check(exchanger.exchange(new Box()).next() == 2);
        CountDownLatch latch = new CountDownLatch(2);
        Box[] counted = {new Box(), new Box()};
        for (Box box : counted) {
            start(() -> {
                box.next();
                latch.countDown();
            });
        }
        while (!latch.await(1, TimeUnit.MILLISECONDS)) {
            Thread.onSpinWait();
        }
        check(counted[0].next() + counted[1].next() == 4);
        CyclicBarrier broken = new CyclicBarrier(2);
        Box before = new Box();
        Thread waits = start(() -> {
            try {
                broken.await();
                check(false);
            } catch (BrokenBarrierException e) {
                before.next();
            }
        });
        while (broken.getNumberWaiting() == 0) {
            Thread.onSpinWait();
        }
        before.next();
        broken.reset();
        waits.join();
    }

    private static void pools() throws Exception {
        ThreadPoolExecutor pool = (ThreadPoolExecutor) Executors.newFixedThreadPool(2);
        Box box = new Box();
        pool.execute(box::next);
        while (pool.getCompletedTaskCount() < 1) {
            Thread.onSpinWait();
        }
        check(box.next() == 2);
        ExecutorCompletionService<Void> service = new ExecutorCompletionService<>(pool);
        service.submit(box::next, null);
        service.take();
        check(box.next() == 4);
        pool.shutdown();
        while (!pool.isTerminated()) {
            Thread.onSpinWait();
        }
        Box parked = new Box();
        Thread main = Thread.currentThread();
        Thread unparks = start(() -> {
            parked.next();
            LockSupport.unpark(main);
        });
        LockSupport.park();
        if (unparks.isAlive()) {
            unparks.join();
        }
        check(parked.next() == 2);
        Box asked = new Box();
        Thread interrupts = start(() -> {
            asked.next();
            main.interrupt();
        });
        while (!Thread.interrupted()) {
            Thread.onSpinWait();
        }
        check(asked.next() == 2);
        interrupts.join();
        try {
            ExecutorService virtual = (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
            Box light = new Box();
            check(virtual.submit(light::next).get() == 1 && light.next() == 2);
            virtual.execute(light::next);
            virtual.shutdown();
            check(virtual.awaitTermination(60, TimeUnit.SECONDS) && light.next() == 4);
        } catch (NoSuchMethodException e) {
            // There are no virtual threads in this version.
        }
    }

    public static void main(String[] arguments) throws Exception {
        futures();
        tasks();
        barriers();
        pools();
    }
}
