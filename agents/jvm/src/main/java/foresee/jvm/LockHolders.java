package foresee.jvm;

import java.util.Arrays;

/**
 * Which threads hold a lock of {@code java.util.concurrent} by what has been recorded of it. A lock is taken before that is recorded,
 * and given up after, so whoever is a holder here really holds it.
 *
 * <p>Its steps are recorded under the monitor of this object: so a step that says that an attempt failed is recorded while
 * another thread holds the lock, and the attempt would fail there.
 */
final class LockHolders {
    private ThreadLog owner;
    private int depth;
    /** The threads with shared holds, one entry for each hold. */
    private ThreadLog[] readers = {};
    private int shared;

    /** Notes a step on the lock, which has been recorded. */
    void note(int op, ThreadLog log) {
        switch (op) {
            case Op.ACQUIRE -> {
                owner = log;
                depth++;
            }
            case Op.RELEASE -> {
                if (owner == log && --depth == 0) {
                    owner = null;
                }
            }
            case Op.ACQUIRE_SHARED -> {
                if (shared == readers.length) {
                    readers = Arrays.copyOf(readers, Math.max(4, 2 * shared));
                }
                readers[shared++] = log;
            }
            case Op.RELEASE_SHARED -> {
                for (int i = 0; i < shared; i++) {
                    if (readers[i] == log) {
                        readers[i] = readers[--shared];
                        readers[shared] = null;
                        return;
                    }
                }
            }
            default -> { }
        }
    }

    /** Notes that the holder gives the lock up to wait; how often it held it. */
    int give() {
        int held = depth;
        owner = null;
        depth = 0;
        return held;
    }

    /** Notes that a thread has the lock again after a wait. */
    void take(ThreadLog log, int held) {
        owner = log;
        depth = held;
    }

    /** Whether another thread prevents this one from having the lock. */
    boolean isBusy(ThreadLog log, boolean isShared) {
        return owner != null && owner != log || !isShared && readsBesides(log);
    }

    private boolean readsBesides(ThreadLog log) {
        for (int i = 0; i < shared; i++) {
            if (readers[i] != log) {
                return true;
            }
        }
        return false;
    }

    /** Whether a thread prevents itself from having the lock alone, because it shares it. */
    boolean isOwnReader(ThreadLog log) {
        return shared > 0 && owner != log && !readsBesides(log);
    }
}
