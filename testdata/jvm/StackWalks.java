import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Calls itself in many ways, and at every turn writes down what the JVM knows of its call stack: the lines of all calls, as one number. */
public class StackWalks {
    static final StackWalker WALKER = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
    /** Each thread has a place of its own. */
    static long[] path = new long[8];

    static class Failure extends RuntimeException {
        static final long serialVersionUID = 1;
    }

    final Random random;
    final int slot;

    StackWalks(int slot) {
        this.slot = slot;
        random = new Random(slot);
    }

    /** Writes the lines of the calls, outermost first, each worth 1009 times the next one. */
    static void note(int slot) {
        Object[] frames = WALKER.walk(all -> all.filter(frame -> isOurs(frame)).skip(1).toArray());
        long mixed = 0;
        for (int i = frames.length - 1; i >= 0; i--) {
            mixed = mixed * 1009 + ((StackWalker.StackFrame) frames[i]).getLineNumber();
        }
        path[slot] = mixed;
    }

    static boolean isOurs(StackWalker.StackFrame frame) {
        // The agent's methods and, here, lambdas of the walk itself do not count.
        return frame.getDeclaringClass().getName().startsWith("StackWalks") && !frame.getMethodName().startsWith("$");
    }

    void walk(int depth) {
        note(slot);
        if (depth == 0) {
            return;
        }
        switch (random.nextInt(9)) {
            case 0 -> walk(depth - 1);
            case 1 -> {
                walk(depth - 1);
                walk(depth / 2);
            }
            case 2 -> new Made(this, depth - 1).again(depth / 2);
            case 3 -> List.of(1, 2).forEach(each -> walk(depth - each < 0 ? 0 : depth - each));
            case 4 -> {
                try {
                    fail(depth - 1);
                } catch (Failure e) {
                    note(slot);
                    walk(depth / 2);
                }
            }
            case 5 -> {
                try {
                    new Broken(this, depth - 1);
                } catch (Failure e) {
                    note(slot);
                }
            }
            case 6 -> compare(depth - 1);
            case 7 -> swallow(() -> {
                fail(depth - 1);
                return 0;
            });
            default -> locked(depth - 1);
        }
        note(slot);
    }

    void fail(int depth) {
        walk(depth / 2);
        long before = 7, later = depth;
        if (before + later > 0) {
            throw new Failure();
        }
    }

    int failing(int depth) {
        fail(depth);
        return 1;
    }

    synchronized void locked(int depth) {
        try {
            walk(depth);
        } finally {
            note(slot);
        }
    }

    /** The JDK calls back, and its own code is no part of the stack. */
    void compare(int depth) {
        TreeSet<Integer> sorted = new TreeSet<>((a, b) -> {
            note(slot);
            return Integer.compare(a, b);
        });
        sorted.add(depth);
        sorted.add(depth + 1);
    }

    static void swallow(Callable<Integer> task) {
        // What it throws ends in the JDK.
        java.util.concurrent.FutureTask<Integer> future = new java.util.concurrent.FutureTask<>(task);
        future.run();
    }

    /** Its superclass's constructor makes calls. */
    static class Base {
        final StackWalks in;

        Base(StackWalks in, int depth) {
            this.in = in;
            in.walk(depth / 2);
        }
    }

    static class Made extends Base {
        Made(StackWalks in, int depth) {
            super(in, depth);
            note(in.slot);
        }

        void again(int depth) {
            in.walk(depth);
        }
    }

    static class Broken extends Base {
        Broken(StackWalks in, int depth) {
            super(in, in.failing(depth));
        }
    }

    /** Made by the first access, wherever that is. */
    static class Lazy {
        static int value = 1;

        static {
            note(7);
        }
    }

    static class Lazier {
        static {
            note(7);
        }
    }

    static void all(int slot) {
        StackWalks walks = new StackWalks(slot);
        for (int i = 0; i < 40; i++) {
            walks.walk(i % 9);
        }
        note(slot);
    }

    static int deep(int slot, int more) {
        if (more > 0) {
            return deep(slot, more - 1) + 1;
        }
        note(slot);
        return 0;
    }

    static int endless(int n) {
        return endless(n + 1) + 1;
    }

    public static void main(String[] arguments) throws Exception {
        note(1);
        int value =
            Lazy.value;
        new Lazier();
        all(value);
        deep(1, 300);
        try {
            endless(0);
        } catch (StackOverflowError e) {
            note(1);
        }
        all(1);
        Thread thread = new Thread(() -> all(2));
        thread.start();
        thread.join();
        ExecutorService pool = Executors.newFixedThreadPool(1);
        for (int i = 0; i < 3; i++) {
            pool.submit(() -> new StackWalks(3).fail(6));
        }
        pool.submit(() -> all(3)).get();
        pool.shutdown();
        try {
            // From Java 21 on.
            Thread virtual = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, (Runnable) () -> all(4));
            virtual.join();
        } catch (NoSuchMethodException e) {
            all(4);
        }
        note(1);
    }
}
