package foresee.jvm;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The locks that make an access and its place in the order one step.
 *
 * <p>A stripe is a number: odd while it is locked, and half of it counts the steps so far. Only an access is made under it, and
 * nothing that could wait, so it is free again at once; a thread that fails there for want of stack is overtaken after a while.
 */
final class Stripes {
    private static final int COUNT = 4096;
    private static final int SPACING = 8;
    private static final long PATIENCE_NANOS = 2_000_000_000L;
    private static final AtomicLongArray stripes = new AtomicLongArray(COUNT * SPACING);

    /** The stripe of everything that specifications name, so that their steps are in the order in which they happened. */
    static final int WATCHED = 1;

    private Stripes() {}

    /** The stripe of a variable, from two. */
    static int of(long object, int part) {
        long hash = (object * 31 + part) * 0x9e3779b97f4a7c15L;
        return 2 + (int) (hash >>> 52) % (COUNT - 2);
    }

    /** Locks a stripe; the ticket of the step that follows. */
    static int lock(int stripe) {
        int at = stripe * SPACING;
        for (int tries = 0;; tries++) {
            long now = stripes.get(at);
            if ((now & 1) == 0 && stripes.compareAndSet(at, now, now + 1)) {
                return (int) (now >>> 1);
            }
            if (tries > 64) {
                waitFor(at);
            } else {
                Thread.onSpinWait();
            }
        }
    }

    static void free(int stripe, int ticket) {
        int at = stripe * SPACING;
        // A thread that was overtaken has lost its turn.
        long now = stripes.get(at);
        if ((now & 1) != 0 && (int) (now >>> 1) == ticket) {
            stripes.lazySet(at, now + 1);
        }
    }

    /** The ticket of a step that is made without the lock. */
    static int take(int stripe) {
        int ticket = lock(stripe);
        free(stripe, ticket);
        return ticket;
    }

    private static void waitFor(int at) {
        long begin = System.nanoTime();
        long locked = stripes.get(at);
        while ((locked & 1) != 0 && stripes.get(at) == locked) {
            Thread.yield();
            if (System.nanoTime() - begin > PATIENCE_NANOS && stripes.compareAndSet(at, locked, locked + 1)) {
                Log.unordered("a thread was overtaken during an access, because its stack was full or it was not run for seconds");
            }
        }
    }
}
