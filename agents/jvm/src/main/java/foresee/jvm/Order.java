package foresee.jvm;

import java.util.Collection;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Exchanger;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Phaser;
import java.util.concurrent.ThreadPoolExecutor;

/**
 * What objects of the JDK hand from thread to thread.
 *
 * <p>A thread posts at an object before it lets others go on (it completes a future, counts a latch down, submits a task), and
 * looks after it was let go on (it got the value, waited, runs the task). A look comes after every post so far; posts are not
 * ordered among themselves. A thread that learns that something has not happened yet misses it: what was missed comes later.
 * Calls of these are inserted into the code of the JDK.
 */
public final class Order {
    private Order() {}

    /** Tasks that the JDK lets do their work one after the other, whoever executes them. */
    private static final ClassValue<Boolean> ORDERED_TASKS = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            return type.getName().equals("java.util.stream.ForEachOps$ForEachOrderedTask");
        }
    };

    private static final ClassValue<Boolean> OPAQUE_TASKS = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            String name = type.getName();
            return type.getClassLoader() == null && (!name.startsWith("java.util.concurrent.") || name.startsWith("java.util.concurrent.ConcurrentHashMap")
                    || name.startsWith("java.util.concurrent.SubmissionPublisher"));
        }
    };

    // What is certain about those who look, in bits 28 to 30 of the value of a post; the reader has the same list.
    /** They come after one of those who posted. */
    private static final int ANY = 1 << 28;
    /** They come after so many, in groups. */
    private static final int GROUP = 2 << 28;
    /** They come after so many. */
    private static final int COUNT = 3 << 28;
    /** They come after those of this phase. */
    private static final int PHASE = 4 << 28;
    /** They may come after nobody. */
    private static final int NOBODY = 5 << 28;
    /** They come after whoever posts, if that is only one. */
    static final int ONE = 6 << 28;
    private static final int MOST = (1 << 28) - 1;

    private static void note(int op, Object object) {
        if (Log.isOn && object != null) {
            ThreadLog log = ThreadLog.current();
            if (log.isAsking) {
                return;
            }
            log.isAsking = true;
            int certain = op == Op.POST ? certain(object) : 0;
            log.isAsking = false;
            log.note(op, 0, Ids.of(object instanceof Phaser phaser ? phaser.getRoot() : object, log), certain);
        }
    }

    private static int certain(Object object) {
        if (object instanceof CompletableFuture) {
            return ANY;
        }
        if (object instanceof CountDownLatch latch) {
            return COUNT | (int) Math.min(latch.getCount(), MOST);
        }
        if (object instanceof Phaser phaser) {
            return PHASE | phaser.getPhase() & MOST;
        }
        return object instanceof Thread ? ONE : object instanceof Exchanger ? NOBODY : 0;
    }

    /** A thread arrives at a barrier. */
    public static void arrives(Object barrier) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            log.note(Op.POST, 0, Ids.of(barrier, log), GROUP | Math.min(((CyclicBarrier) barrier).getParties(), MOST));
        }
    }

    /** Tasks have ended, as the program was told. */
    public static void lookAll(Object tasks) {
        if (tasks instanceof Object[] all) {
            for (Object task : all) {
                look(task);
            }
        } else if (tasks instanceof Collection<?> all) {
            for (Object task : all) {
                look(task);
            }
        }
    }

    // Semaphores.

    public static void made(Object semaphore, int permits) {
        permits(Op.PERMITS, semaphore, permits);
    }

    public static void raising(Object semaphore, int permits) {
        permits(Op.RAISED, semaphore, permits);
    }

    public static void lowered(Object semaphore, int permits) {
        permits(Op.LOWERED, semaphore, permits);
    }

    /** An attempt that did not wait, or not for ever. */
    public static void tried(boolean isLowered, Object semaphore, int permits) {
        permits(isLowered ? Op.LOWERED : Op.COUNTED, semaphore, isLowered ? -permits : permits);
    }

    public static void counted(Object semaphore) {
        permits(Op.COUNTED, semaphore, 0);
    }

    private static void permits(int op, Object semaphore, int permits) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            log.note(op, log.here(), Ids.of(semaphore, log), permits);
        }
    }

    public static void post(Object object) {
        note(Op.POST, object);
    }

    public static void look(Object object) {
        note(Op.LOOK, object);
    }

    public static void miss(Object object) {
        note(Op.MISS, object);
    }

    /** Something has happened, or not yet. */
    public static void answered(boolean hasHappened, Object object) {
        note(hasHappened ? Op.LOOK : Op.MISS, object);
    }

    /** The result of a completable future was read, which is null before there is one. */
    public static void result(Object future, Object result) {
        answered(result != null, future);
    }

    /** The same, by a thread that waits for it. */
    public static void resultSeen(Object future, Object result) {
        if (result != null) {
            look(future);
        }
    }

    /** The state of a task of a pool was read, which is below zero at the end. */
    public static void status(Object task, int status) {
        if (status < 0) {
            look(task);
        }
    }

    /** The same, where the program asked for it. */
    public static void statusAsked(Object task, int status) {
        answered(status < 0, task);
    }

    /** The state of a future task was read, which is 0 before the end and 1 shortly before it. */
    public static void state(Object task, int state) {
        if (state > 1) {
            look(task);
        }
    }

    public static void stateAsked(Object task, int state) {
        answered(state != 0, task);
    }

    /** A worker begins with a task. If all tasks of a pool are executed one after the other, its number is that of the pool, and 1 if in the order of submission. */
    public static void begins(Object task, Object pool) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            log.isAsking = true;
            boolean isSingle = isSingle(pool);
            boolean isInOrder = isSingle && isInOrder(pool);
            log.isAsking = false;
            boolean isOrdered = pool == null && ORDERED_TASKS.get(task.getClass());
            log.tell(Op.TASK_BEGIN, 0, 0, isSingle ? Ids.of(pool, log) : 0, isInOrder ? 1 : isOrdered ? 2 : 0);
        }
        look(task);
    }

    private static boolean isSingle(Object pool) {
        if (pool instanceof ThreadPoolExecutor threads) {
            return threads.getMaximumPoolSize() == 1 || threads.getCorePoolSize() <= 1 && threads.getQueue().remainingCapacity() == Integer.MAX_VALUE;
        }
        // The thread of a timer.
        return pool instanceof Thread;
    }

    private static boolean isInOrder(Object pool) {
        return pool instanceof ThreadPoolExecutor threads && (threads.getQueue() instanceof LinkedBlockingQueue || threads.getQueue() instanceof ArrayBlockingQueue);
    }

    public static void ends() {
        if (Log.isOn) {
            ThreadLog.current().tell(Op.TASK_END, 0, 0, 0, 0);
        }
    }

    /** The program is about to wait for as long as it takes. */
    public static void waits(Object object) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            log.tell(Op.WAITS, 0, log.here(), Ids.of(object instanceof Phaser phaser ? phaser.getRoot() : object, log), 0);
        }
    }

    /** A worker, or a thread that helps, begins with a task. What tasks of the JDK do for its own purposes is not followed in detail. */
    public static void execBegin(Object task) {
        begins(task, null);
        ThreadLog.current().call(OPAQUE_TASKS.get(task.getClass()) ? Threads.GLOBAL : 0);
    }

    public static void execEnd(Object task) {
        ThreadLog.current().returned();
        post(task);
        Thread thread = Thread.currentThread();
        post(thread instanceof ForkJoinWorkerThread worker ? worker.getPool() : ForkJoinPool.commonPool());
        post(ThreadLog.current().helped);
        ends();
    }

    /** A thread waits for all tasks of a pool, and executes some of them itself. */
    public static void helping(Object pool) {
        if (Log.isOn) {
            ThreadLog.current().helped = pool;
        }
    }

    /** After {@code ForkJoinTask.helpQuiesce}. */
    public static void quiet() {
        Thread thread = Thread.currentThread();
        look(thread instanceof ForkJoinWorkerThread worker ? worker.getPool() : ForkJoinPool.commonPool());
    }
}
