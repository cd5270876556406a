import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;

/** Fields, static fields and elements are published and locked through handles and updaters. */
public class FieldHandles {
    static class Base {
        int inherited;
    }

    static final class Box extends Base {
        int data;
        int ready;
        volatile int locked;
        volatile long turns;
        volatile String text;
    }

    private static final VarHandle READY;
    private static final VarHandle INHERITED;
    private static final VarHandle OPEN;
    private static final VarHandle SLOTS = MethodHandles.arrayElementVarHandle(long[].class);
    private static final AtomicIntegerFieldUpdater<Box> LOCKED = AtomicIntegerFieldUpdater.newUpdater(Box.class, "locked");
    private static final AtomicLongFieldUpdater<Box> TURNS = AtomicLongFieldUpdater.newUpdater(Box.class, "turns");
    private static final AtomicReferenceFieldUpdater<Box, String> TEXT = AtomicReferenceFieldUpdater.newUpdater(Box.class, String.class, "text");
    private static boolean open;

    static {
        try {
            READY = MethodHandles.lookup().findVarHandle(Box.class, "ready", int.class);
            INHERITED = MethodHandles.lookup().findVarHandle(Box.class, "inherited", int.class);
            OPEN = MethodHandles.lookup().findStaticVarHandle(FieldHandles.class, "open", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** What one thread does, and what another does when that can be seen. */
    private static void handOver(Runnable first, java.util.function.BooleanSupplier isDone, Runnable second) throws InterruptedException {
        Thread reader = new Thread(() -> {
            while (!isDone.getAsBoolean()) {
                Thread.onSpinWait();
            }
            second.run();
        });
        reader.start();
        first.run();
        reader.join();
    }

    private static void check(boolean isRight) {
        if (!isRight) {
            throw new AssertionError();
        }
    }

    private static final class Lists {
        final Box box = new Box();
        final long[] slots = new long[2];
    }

    public static void main(String[] arguments) throws InterruptedException {
        Box one = new Box();
        handOver(() -> {
            one.data = 1;
            READY.setRelease(one, 1);
        }, () -> (int) READY.getAcquire(one) == 1, () -> one.data++);
        Box two = new Box();
        handOver(() -> {
            two.data = 1;
            check(INHERITED.compareAndSet(two, 0, 7) && !INHERITED.compareAndSet(two, 0, 8));
            check((int) INHERITED.getAndAdd(two, 1) == 7);
        }, () -> (int) INHERITED.getVolatile(two) == 8, () -> two.data++);
        Box three = new Box();
        handOver(() -> {
            three.data = 1;
            OPEN.setVolatile(true);
        }, () -> (boolean) OPEN.getVolatile(), () -> three.data++);
        Lists four = new Lists();
        handOver(() -> {
            four.box.data = 1;
            check((long) SLOTS.getAndBitwiseOr(four.slots, 1, 6L) == 0);
            check((long) SLOTS.compareAndExchange(four.slots, 1, 6L, 9L) == 6);
        }, () -> (long) SLOTS.getVolatile(four.slots, 1) == 9, () -> four.box.data++);
        Box five = new Box();
        handOver(() -> {
            five.data = 1;
            check(TURNS.incrementAndGet(five) == 1 && TURNS.addAndGet(five, 4) == 5);
            TEXT.lazySet(five, "right");
        }, () -> "right".equals(TEXT.get(five)) && five.text != null && TURNS.get(five) == 5, () -> five.data++);
        // A lock of the program's own.
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int k = 0; k < 3; k++) {
                    while (!LOCKED.compareAndSet(one, 0, 1)) {
                        Thread.onSpinWait();
                    }
                    one.data++;
                    LOCKED.set(one, 0);
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        check(one.data == 8);
        try {
            READY.set((Box) null, 1);
            check(false);
        } catch (NullPointerException e) {
            READY.set(one, 3);
        }
        try {
            SLOTS.setVolatile(four.slots, 2, 1L);
            check(false);
        } catch (ArrayIndexOutOfBoundsException e) {
            check(one.ready == 3);
        }
    }
}
