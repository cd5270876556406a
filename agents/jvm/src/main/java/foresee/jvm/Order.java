package foresee.jvm;

import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinWorkerThread;
import java.util.concurrent.Phaser;

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

    private static final ClassValue<Boolean> OPAQUE_TASKS = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            String name = type.getName();
            return type.getClassLoader() == null && (!name.startsWith("java.util.concurrent.") || name.startsWith("java.util.concurrent.ConcurrentHashMap")
                    || name.startsWith("java.util.concurrent.SubmissionPublisher"));
        }
    };

    private static void note(int op, Object object) {
        if (Log.isOn && object != null) {
            ThreadLog log = ThreadLog.current();
            log.note(op, 0, Ids.of(object instanceof Phaser phaser ? phaser.getRoot() : object, log), 0);
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

    /** A worker, or a thread that helps, begins with a task. What tasks of the JDK do for its own purposes is not followed in detail. */
    public static void execBegin(Object task) {
        look(task);
        ThreadLog.current().call(OPAQUE_TASKS.get(task.getClass()) ? Threads.GLOBAL : 0);
    }

    public static void execEnd(Object task) {
        ThreadLog.current().returned();
        post(task);
        Thread thread = Thread.currentThread();
        post(thread instanceof ForkJoinWorkerThread worker ? worker.getPool() : ForkJoinPool.commonPool());
    }

    /** After {@code ForkJoinTask.helpQuiesce}. */
    public static void quiet() {
        Thread thread = Thread.currentThread();
        look(thread instanceof ForkJoinWorkerThread worker ? worker.getPool() : ForkJoinPool.commonPool());
    }
}
