package foresee.jvm;

import java.util.Collections;
import java.util.Iterator;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.stream.Stream;

/** The lives of threads, and which of them run the program's own code from the start. */
public final class Threads {
    /** The channel of everything whose order is not known in detail: all steps on it are in one order. */
    static final long GLOBAL = -1;

    private static final StackWalker WALKER = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
    /** Which class of the JDK started a thread for its own purposes. */
    private static final Map<Thread, String> managed = Collections.synchronizedMap(new WeakHashMap<>());

    /** The agent's own thread, which runs when the JVM shuts down. */
    static Thread own;

    private Threads() {}

    /** At the beginning of {@code Thread.start}. */
    public static void starting(Thread thread) {
        if (!Log.isOn || thread == own) {
            return;
        }
        ThreadLog log = ThreadLog.current();
        String starter = starter();
        if (starter != null) {
            managed.put(thread, starter);
        }
        long id = Ids.of(thread, log);
        if (Log.isSent) {
            // An observer gets to know of the thread before its first step.
            Log.write("N", id, thread.getName());
        }
        log.note(Op.FORK, log.here(), id, 0);
    }

    /**
     * The class of the JDK that starts a thread for its own purposes. Workers of pools are not meant: their tasks are ordered one
     * by one.
     */
    private static String starter() {
        Class<?> starter = WALKER.walk(Threads::caller);
        return starter != null && starter.getClassLoader() == null && !isFollowed(starter.getName()) ? starter.getName() : null;
    }

    /** The class whose code starts a thread. Without a chain of streams, which every JVM would have to load when it starts. */
    private static Class<?> caller(Stream<StackWalker.StackFrame> frames) {
        for (Iterator<StackWalker.StackFrame> each = frames.iterator(); each.hasNext();) {
            Class<?> type = each.next().getDeclaringClass();
            String name = type.getName();
            if (type != Threads.class && !Thread.class.isAssignableFrom(type) && !name.startsWith("java.lang.ThreadBuilders") && !name.startsWith("jdk.internal.")
                    && !name.startsWith("java.lang.System$")) {
                return type;
            }
        }
        return null;
    }

    private static boolean isFollowed(String starter) {
        return starter.equals("java.util.concurrent.ThreadPoolExecutor") || starter.startsWith("java.util.concurrent.ForkJoin")
                || starter.startsWith("java.util.concurrent.CompletableFuture") || starter.equals("java.util.concurrent.ThreadPerTaskExecutor")
                || starter.equals("java.util.concurrent.Executors$DefaultThreadFactory") || starter.equals("java.lang.ApplicationShutdownHooks");
    }

    static boolean isManaged(Thread thread) {
        return managed.containsKey(thread);
    }

    /** Whether nothing is known about who waits for the thread. */
    static boolean isUnknown(Thread thread) {
        String name = managed.get(thread);
        return name != null && !name.startsWith("java.util.concurrent.") && !name.startsWith("java.util.Timer");
    }

    /** At the beginning of {@code Thread.exit}, which the JVM calls last. */
    public static void ending(Thread thread) {
        if (Log.isOn && thread == Thread.currentThread() && ThreadLog.isMade()) {
            ThreadLog log = ThreadLog.current();
            log.note(Op.END, 0, Ids.of(thread, log), 0);
            ThreadLog.forget();
        }
    }

    /** At the beginning of {@code Thread.interrupt}. */
    public static void interrupting(Thread thread) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            log.note(Op.POST, log.here(), Ids.of(thread, log), Order.ONE);
        }
    }

    /** After a call that may have shown that a thread has ended. */
    public static void joined(Object other, int site) {
        if (Log.isOn && other instanceof Thread thread && thread != Thread.currentThread() && thread.getState() == Thread.State.TERMINATED) {
            ThreadLog log = ThreadLog.current();
            log.note(Op.JOIN, site, Ids.of(thread, log), 0);
        }
    }

    /** After the current thread has learnt that it was interrupted, or was woken. */
    public static void look(Object thread, int site) {
        if (Log.isOn && thread instanceof Thread) {
            ThreadLog log = ThreadLog.current();
            log.note(Op.LOOK, site, Ids.of(thread, log), 0);
        }
    }

    /** After a call has answered whether a thread is interrupted. */
    public static void asked(boolean isInterrupted, Object thread, int site) {
        if (Log.isOn && thread instanceof Thread) {
            ThreadLog log = ThreadLog.current();
            log.note(isInterrupted ? Op.LOOK : Op.MISS, site, Ids.of(thread, log), 0);
        }
    }

    /** After a call has thrown. */
    public static void threw(Throwable thrown, int site) {
        if (thrown instanceof InterruptedException) {
            look(Thread.currentThread(), site);
        }
    }
}
