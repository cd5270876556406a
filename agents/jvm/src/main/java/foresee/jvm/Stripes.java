package foresee.jvm;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * The locks that make an access and its place in the order one step.
 *
 * <p>A stripe is a number: odd while it is locked, and half of it counts the steps so far. Only an access is made under it, and
 * nothing that could wait, so it is free again at once; a thread that fails there for want of stack is overtaken after a while.
 */
final class Stripes {
    private static final int COUNT = 4096;
    /** A cache line each, so that threads do not disturb each other. */
    private static final int SHIFT = 6;
    private static final long PATIENCE_NANOS = 2_000_000_000L;
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long BASE = allocate();

    /** The stripe of everything that specifications name, so that their steps are in the order in which they happened. */
    static final int WATCHED = 1;

    private Stripes() {}

    /** The stripe of a variable, from two. */
    @ForceInline
    static int of(long object, int part) {
        long hash = (object * 31 + part) * 0x9e3779b97f4a7c15L;
        int stripe = (int) (hash >>> 52);
        return stripe < 2 ? stripe + 2 : stripe;
    }

    private static long allocate() {
        long size = (long) (COUNT + 1) << SHIFT;
        long start = U.allocateMemory(size);
        U.setMemory(start, size, (byte) 0);
        return start + (1 << SHIFT) - 1 >> SHIFT << SHIFT;
    }

    /** Locks a stripe; the ticket of the step that follows. */
    @ForceInline
    static int lock(int stripe) {
        long at = BASE + ((long) stripe << SHIFT);
        long now = U.getLongVolatile(null, at);
        return (now & 1) == 0 && U.compareAndSetLong(null, at, now, now + 1) ? (int) (now >>> 1) : lockLater(at);
    }

    @DontInline
    private static int lockLater(long at) {
        for (int tries = 0;; tries++) {
            long now = U.getLongVolatile(null, at);
            if ((now & 1) == 0 && U.compareAndSetLong(null, at, now, now + 1)) {
                return (int) (now >>> 1);
            }
            if (tries > 64) {
                waitFor(at);
            } else {
                Thread.onSpinWait();
            }
        }
    }

    @ForceInline
    static void free(int stripe, int ticket) {
        long at = BASE + ((long) stripe << SHIFT);
        // A thread that was overtaken has lost its turn.
        long now = U.getLongVolatile(null, at);
        if ((now & 1) != 0 && (int) (now >>> 1) == ticket) {
            U.putLongRelease(null, at, now + 1);
        }
    }

    /** The ticket of a step that is made without the lock. */
    static int take(int stripe) {
        int ticket = lock(stripe);
        free(stripe, ticket);
        return ticket;
    }

    private static void waitFor(long at) {
        long begin = System.nanoTime();
        long locked = U.getLongVolatile(null, at);
        while ((locked & 1) != 0 && U.getLongVolatile(null, at) == locked) {
            Thread.yield();
            if (System.nanoTime() - begin > PATIENCE_NANOS && U.compareAndSetLong(null, at, locked, locked + 1)) {
                Log.unordered("a thread was overtaken during an access, because its stack was full or it was not run for seconds");
            }
        }
    }
}
