import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveAction;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;

/** Two threads write each of these fields, and the objects of the JDK that they use do not order that. */
public class NotHandedOver {
    static int besideLatch;
    static int besideFutures;
    static int beforeGet;
    static int inTasks;
    static int afterBarrier;
    static int throughHandle;
    static int afterUnparks;

    static final class Names extends ArrayList<String> {
        private static final long serialVersionUID = 1;

        @Override
        public boolean add(String name) {
            return super.add(name);
        }
    }

    private static Thread start(Runnable part) {
        Thread thread = new Thread(part);
        thread.start();
        return thread;
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static void latch() throws InterruptedException {
        CountDownLatch latch = new CountDownLatch(2);
        start(() -> {
            besideLatch = 1;
            latch.countDown();
        });
        Thread second = start(() -> {
            latch.countDown();
            besideLatch = 2;
        });
        latch.await();
        second.join();
    }

    private static void futures() throws InterruptedException {
        CompletableFuture<Integer> one = new CompletableFuture<>();
        CompletableFuture<Integer> two = new CompletableFuture<>();
        Thread first = start(() -> {
            besideFutures = 1;
            one.complete(1);
        });
        Thread second = start(() -> {
            two.complete(1);
            besideFutures = 2;
        });
        first.join();
        second.join();
        one.thenCombine(two, Integer::sum).join();
    }

    private static void get() throws Exception {
        CompletableFuture<Integer> future = new CompletableFuture<>();
        Thread other = start(() -> {
            future.complete(1);
            beforeGet = 1;
        });
        beforeGet = 2;
        future.get();
        other.join();
        CompletableFuture<Integer> never = new CompletableFuture<>();
        try {
            never.get(1, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            never.complete(1);
        }
    }

    static final class Write extends RecursiveAction {
        private static final long serialVersionUID = 1;

        @Override
        protected void compute() {
            inTasks++;
        }
    }

    private static void tasks() {
        ForkJoinPool pool = new ForkJoinPool(2);
        Write one = new Write();
        Write two = new Write();
        CyclicBarrier both = new CyclicBarrier(2);
        Runnable run = () -> await(both);
        // Each task runs in a worker of its own.
        var first = pool.submit(run);
        var second = pool.submit(run);
        first.join();
        second.join();
        CyclicBarrier again = new CyclicBarrier(2);
        first = pool.submit(() -> {
            await(again);
            one.invoke();
        });
        second = pool.submit(() -> {
            await(again);
            two.invoke();
        });
        first.join();
        second.join();
        pool.shutdown();
    }

    private static void barrier() throws InterruptedException {
        CyclicBarrier barrier = new CyclicBarrier(2);
        Thread one = start(() -> {
            await(barrier);
            afterBarrier = 1;
        });
        Thread two = start(() -> {
            await(barrier);
            afterBarrier = 2;
        });
        one.join();
        two.join();
    }

    private static void handle() throws Exception {
        VarHandle field = MethodHandles.lookup().findStaticVarHandle(NotHandedOver.class, "throughHandle", int.class);
        Thread one = start(() -> field.set(1));
        Thread two = start(() -> field.set(2));
        one.join();
        two.join();
    }

    private static void unparks() throws InterruptedException {
        Thread main = Thread.currentThread();
        Thread one = start(() -> {
            afterUnparks = 1;
            LockSupport.unpark(main);
        });
        Thread two = start(() -> {
            LockSupport.unpark(main);
            afterUnparks = 2;
        });
        one.join();
        two.join();
    }

    private static void inherited() throws InterruptedException {
        Names names = new Names();
        Thread one = start(() -> names.add("one"));
        Thread two = start(() -> {
            if (names.isEmpty()) {
                Thread.onSpinWait();
            }
        });
        one.join();
        two.join();
    }

    public static void main(String[] arguments) throws Exception {
        latch();
        futures();
        get();
        tasks();
        barrier();
        handle();
        unparks();
        inherited();
    }
}
