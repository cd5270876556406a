package foresee.jvm;

import java.util.Date;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** Locks and conditions of {@code java.util.concurrent}. Other implementations are the program's own code, or channels. */
public final class Locks {
    private enum Kind { LOCK, SHARED, CHANNEL, NONE }

    /** How long a failed attempt waits for an explanation. */
    private static final long PATIENCE_NANOS = 1_000_000_000L;

    private Locks() {}

    private static Kind kind(Lock lock) {
        if (lock instanceof ReentrantLock || lock instanceof ReentrantReadWriteLock.WriteLock) {
            return Kind.LOCK;
        }
        if (lock instanceof ReentrantReadWriteLock.ReadLock) {
            return Kind.SHARED;
        }
        return lock != null && lock.getClass().getClassLoader() == null ? Kind.CHANNEL : Kind.NONE;
    }

    private static void note(Kind kind, Lock lock, int exclusive, int shared, int site) {
        if (!Log.isOn) {
            return;
        }
        ThreadLog log = ThreadLog.current();
        switch (kind) {
            case LOCK, SHARED -> {
                int op = kind == Kind.LOCK ? exclusive : shared;
                long id = Ids.root(lock, log);
                LockHolders holders = Ids.holders(lock, log);
                if (holders != null) {
                    synchronized (holders) {
                        log.note(op, site, id, 0);
                        holders.note(op, log);
                    }
                }
            }
            case CHANNEL -> log.note(Op.CHANNEL, site, Ids.root(lock, log), 0);
            case NONE -> { }
        }
    }

    private static void tell(Kind kind, Lock lock, int exclusive, int shared, int site) {
        if (Log.isOn && (kind == Kind.LOCK || kind == Kind.SHARED)) {
            ThreadLog log = ThreadLog.current();
            log.tell(kind == Kind.LOCK ? exclusive : shared, 0, site, Ids.root(lock, log), 0);
        }
    }

    public static void lock(Lock lock, int site) {
        Kind kind = kind(lock);
        tell(kind, lock, Op.REQUEST, Op.REQUEST_SHARED, site);
        lock.lock();
        note(kind, lock, Op.ACQUIRE, Op.ACQUIRE_SHARED, site);
    }

    public static void lockInterruptibly(Lock lock, int site) throws InterruptedException {
        Kind kind = kind(lock);
        try {
            lock.lockInterruptibly();
        } catch (InterruptedException e) {
            Threads.threw(e, site);
            throw e;
        }
        note(kind, lock, Op.ACQUIRE, Op.ACQUIRE_SHARED, site);
    }

    public static boolean tryLock(Lock lock, int site) {
        return tried(lock, lock.tryLock(), Op.TRY, site);
    }

    public static boolean tryLock(Lock lock, long time, TimeUnit unit, int site) throws InterruptedException {
        try {
            return tried(lock, lock.tryLock(time, unit), Op.TRY_FOR, site);
        } catch (InterruptedException e) {
            Threads.threw(e, site);
            throw e;
        }
    }

    private static boolean tried(Lock lock, boolean isTaken, int how, int site) {
        Kind kind = kind(lock);
        if (!isTaken && !(kind == Kind.LOCK || kind == Kind.SHARED) || !Log.isOn) {
            if (!isTaken) {
                note(kind, lock, Op.BUSY, Op.BUSY, site);
            }
            return isTaken;
        }
        if (!isTaken && failed(lock, kind == Kind.SHARED, site)) {
            return false;
        }
        tell(kind, lock, how, how, site);
        note(kind, lock, Op.ACQUIRE, Op.ACQUIRE_SHARED, site);
        return true;
    }

    /**
     * Records an attempt that failed, at a moment when another thread is known to hold the lock. If there is none, because the
     * holder has not recorded yet that it took the lock, or has recorded that it gives it up, the attempt is made again: it
     * might as well have been made a little later. Whether it has failed in the end.
     */
    private static boolean failed(Lock lock, boolean isShared, int site) {
        ThreadLog log = ThreadLog.current();
        LockHolders holders = Ids.holders(lock, log);
        if (holders == null) {
            return true;
        }
        long id = Ids.root(lock, log);
        long begin = System.nanoTime();
        while (true) {
            boolean isLate = System.nanoTime() - begin > PATIENCE_NANOS;
            synchronized (holders) {
                if (!isShared && holders.isOwnReader(log)) {
                    // It fails whatever other threads do.
                    return true;
                }
                if (isLate || holders.isBusy(log, isShared)) {
                    log.note(Op.BUSY, site, id, isShared ? 1 : 0);
                    return true;
                }
            }
            // Attempts with a time limit do not overtake those who wait for a fair lock.
            boolean isQueue = lock instanceof ReentrantLock fair && fair.isFair() && fair.hasQueuedThreads();
            if (!isQueue && lock.tryLock()) {
                return false;
            }
            Thread.yield();
        }
    }

    public static void unlock(Lock lock, int site) {
        Kind kind = kind(lock);
        boolean isHeld = !(lock instanceof ReentrantLock own && !own.isHeldByCurrentThread()
                || lock instanceof ReentrantReadWriteLock.WriteLock write && !write.isHeldByCurrentThread());
        if (isHeld) {
            note(kind, lock, Op.RELEASE, Op.RELEASE_SHARED, site);
        }
        lock.unlock();
    }

    public static Condition newCondition(Lock lock, int site) {
        Condition condition = lock.newCondition();
        if (condition != null && kind(lock) == Kind.LOCK) {
            ThreadLog log = ThreadLog.current();
            Ids.link(condition, lock, log);
        }
        return condition;
    }

    private interface Wait {
        long make() throws InterruptedException;
    }

    private static long await(Condition condition, Wait wait, int site) throws InterruptedException {
        boolean isOurs = Log.isOn && condition.getClass().getClassLoader() == null;
        ThreadLog log = ThreadLog.current();
        long id = isOurs ? Ids.of(condition, log) : 0;
        long lock = isOurs ? Ids.root(condition, log) : 0;
        LockHolders holders = isOurs ? Ids.holders(condition, log) : null;
        int held = 0;
        if (holders != null) {
            synchronized (holders) {
                log.note(Op.WAIT_BEGIN, Stripes.of(lock, 0), site, id, lock);
                held = holders.give();
            }
        }
        InterruptedException thrown = null;
        long result = 0;
        try {
            result = wait.make();
        } catch (InterruptedException e) {
            thrown = e;
        } finally {
            if (holders != null) {
                synchronized (holders) {
                    log.note(Op.WAIT_END, Stripes.of(lock, 0), site, id, lock);
                    holders.take(log, held);
                }
            }
        }
        if (thrown != null) {
            Threads.threw(thrown, site);
            throw thrown;
        }
        return result;
    }

    public static void await(Condition condition, int site) throws InterruptedException {
        await(condition, () -> {
            condition.await();
            return 0;
        }, site);
    }

    public static boolean await(Condition condition, long time, TimeUnit unit, int site) throws InterruptedException {
        return await(condition, () -> condition.await(time, unit) ? 1 : 0, site) != 0;
    }

    public static long awaitNanos(Condition condition, long nanos, int site) throws InterruptedException {
        return await(condition, () -> condition.awaitNanos(nanos), site);
    }

    public static boolean awaitUntil(Condition condition, Date deadline, int site) throws InterruptedException {
        return await(condition, () -> condition.awaitUntil(deadline) ? 1 : 0, site) != 0;
    }

    public static void awaitUninterruptibly(Condition condition, int site) {
        try {
            await(condition, () -> {
                condition.awaitUninterruptibly();
                return 0;
            }, site);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    public static void signal(Condition condition, int site) {
        tell(condition, Op.NOTIFY, site);
        condition.signal();
    }

    public static void signalAll(Condition condition, int site) {
        tell(condition, Op.NOTIFY_ALL, site);
        condition.signalAll();
    }

    private static void tell(Condition condition, int op, int site) {
        if (Log.isOn && condition != null && condition.getClass().getClassLoader() == null) {
            ThreadLog log = ThreadLog.current();
            // In the order of the steps on its lock.
            log.note(op, Stripes.of(Ids.root(condition, log), 0), site, Ids.of(condition, log), 0);
        }
    }
}
