package foresee.jvm;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.concurrent.ForkJoinWorkerThread;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * What one thread records.
 *
 * <p>An access in the program becomes two calls from a helper, which are the same everywhere and are compiled once: they are not
 * inlined, and what they call is. Nothing else is called under a stripe, where the stack must not be found to be full.
 */
public final class ThreadLog extends RecordFile {
    /** How many frames of stack must be free before a stripe is locked. */
    private static final int PROBE = 2;

    /** Records nothing. */
    static final ThreadLog IDLE = new ThreadLog();

    private static final ThreadLocal<ThreadLog> LOGS = new ThreadLocal<>();
    /** The logs of workers, which lose what is local to them between tasks. */
    private static final Map<Thread, ThreadLog> WORKERS = Collections.synchronizedMap(new IdentityHashMap<>());
    /** Stands for a log while it is being made, and for one that could not be. */
    private final boolean isIdle;
    /** Whose log it is. Where an object has it in place of a number, only this thread can reach the object. */
    final Thread thread;

    private long ids;
    /** Objects that the thread has used lately. */
    final Ids.Entry[] recent = new Ids.Entry[Ids.RECENT];

    /** The stripe that is locked during an access, or -1, and its ticket. */
    private int held = -1;
    private int ticket;
    /** The stripe of an access whose record has yet to be written, or 0. */
    private int owed;
    private long object;
    private int index;
    private int site;
    private boolean isVolatile;
    /** Whether the agent itself asks an object of the JDK something. */
    boolean isAsking;
    /** The pool whose tasks the thread last waited for. */
    Object helped;
    /** What an access through a handle found. */
    Object found;

    /** The monitors of synchronized methods that were entered and not left. */
    private Object[] monitors = new Object[16];
    private int synchronised;
    /** The channels of calls into the JDK that order threads, and that have not returned. */
    private long[] calls = new long[8];
    private int open;
    /** Which of them have the entry of a map to themselves, one bit each. */
    private long keys;
    /** The classes whose initialisation this thread comes after, one bit each. */
    private long[] initialised = new long[4];
    /** Whether everything that this thread does is in the order of the global channel. */
    boolean isManaged;

    /** The most calls in a stack that is recorded. */
    private static final int DEEPEST = 1 << 14;

    /** How many methods of the program the thread is in, if call stacks are recorded, and where each of them, from 1, called last. */
    public int depth;
    private int[] calling = {};
    /** How many calls of the stack have been recorded, and the least depth since then. */
    private int told;
    private int least;
    private boolean hasMoved;
    /** Whether the log says that the stack is too deep. */
    private boolean isTooDeep;

    private ThreadLog() {
        super(0);
        isIdle = true;
        thread = null;
    }

    private ThreadLog(int number, Thread thread) {
        super(number);
        isIdle = false;
        this.thread = thread;
    }

    /** The log of the current thread. */
    @ForceInline
    static ThreadLog current() {
        ThreadLog log = LOGS.get();
        return log != null ? log : make();
    }

    /** Whether the current thread has recorded anything. */
    static boolean isMade() {
        return LOGS.get() != null || WORKERS.containsKey(Thread.currentThread());
    }

    /** The current thread is the agent's own. */
    static void ignore() {
        LOGS.set(IDLE);
    }

    /** The current thread is about to end. */
    static void forget() {
        WORKERS.remove(Thread.currentThread());
    }

    private static ThreadLog make() {
        // Whatever is called while a log is made is not recorded.
        LOGS.set(IDLE);
        Thread thread = Thread.currentThread();
        // Virtual threads run on others, which do nothing of their own.
        if (thread.getClass().getName().equals("jdk.internal.misc.CarrierThread")) {
            return IDLE;
        }
        if (thread instanceof ForkJoinWorkerThread) {
            ThreadLog known = WORKERS.get(thread);
            if (known != null) {
                LOGS.set(known);
                return known;
            }
        }
        ThreadLog log = new ThreadLog(Log.newThread(), thread);
        if (!log.room()) {
            return IDLE;
        }
        if (Log.isSent) {
            Sender.add(log);
        }
        long id = Ids.of(thread, log);
        Log.write("T", log.number, id + (Threads.isUnknown(thread) ? " ? " : " - ") + thread.getName());
        LOGS.set(log);
        if (thread instanceof ForkJoinWorkerThread) {
            WORKERS.put(thread, log);
        }
        log.note(Op.BEGIN, 0, id, 0);
        log.isManaged = Threads.isManaged(thread);
        return log;
    }

    long nextId() {
        return (long) number << 40 | ++ids;
    }

    /** Describes an object. It was shared together with another, or is shared now, or neither is known. */
    void tellObject(long id, int type, long sharedWith, boolean isShared) {
        room();
        if (sharedWith != 0) {
            put(Op.SHARED_WITH, 0, 0, 0, 0, 0, sharedWith, 0);
        }
        put(Op.OBJECT, isShared ? 1 : 0, 0, 0, 0, 0, id, type);
    }

    // Steps that are recorded beside what they stand for.

    /** Records a step on an object, in the order of all steps on it. */
    void note(int op, int site, long object, long value) {
        note(op, Stripes.of(object, 0), site, object, value);
    }

    void note(int op, int stripe, int site, long object, long value) {
        if (isIdle || !enter()) {
            return;
        }
        int ticket = Stripes.take(stripe);
        put(op, 0, stripe, site, ticket, 0, object, value);
        leave();
    }

    /** Records a step that only its own thread orders. */
    void tell(int op, int type, int site, long object, long value) {
        if (isIdle || !room() || hasMoved && !tellStack()) {
            return;
        }
        put(op, type, 0, site, 0, 0, object, value);
    }

    private void channel(long object) {
        int stripe = Stripes.of(object, 0);
        put(Op.CHANNEL, 0, stripe, 0, Stripes.take(stripe), 0, object, 0);
    }

    /** A step of a thread in a call that orders threads comes between two steps on the call's channel. */
    @ForceInline
    private boolean enter() {
        if (held >= 0) {
            abandon();
        }
        if (!Log.isOn || !room()) {
            return false;
        }
        probe(PROBE, object, object, index);
        if (owed != 0) {
            put(Op.LOST, 0, owed, 0, ticket, 0, 0, 0);
            owed = 0;
        }
        if (hasMoved && !tellStack()) {
            return false;
        }
        leave();
        return true;
    }

    /** An access failed between its two halves, because the stack was full. */
    @DontInline
    private void abandon() {
        if (!Log.isAsync) {
            Stripes.free(held, ticket);
            owed = held;
        }
        held = -1;
    }

    /** Fails now if there is too little stack for what is done under a stripe. */
    @DontInline
    private static long probe(int depth, long a, long b, long c) {
        return depth == 0 ? a : probe(depth - 1, b, c, a) + b;
    }

    @ForceInline
    private void leave() {
        if (open > 0 || isManaged) {
            channels();
        }
    }

    @DontInline
    private void channels() {
        for (int i = 0; i < open; i++) {
            if (calls[i] != 0) {
                channel(calls[i]);
            }
        }
        if (isManaged) {
            channel(Threads.GLOBAL);
        }
    }

    // Accesses: begin, the access itself, and one of read or wrote.

    @ForceInline
    boolean begin(int stripe, long object, int index, int site, boolean isVolatile) {
        if (isIdle || !enter()) {
            return false;
        }
        this.object = object;
        this.index = index;
        this.site = site;
        this.isVolatile = isVolatile;
        ticket = Log.isAsync ? 0 : Stripes.lock(stripe);
        held = stripe;
        return true;
    }

    /** Whether an access has begun and not ended. */
    boolean isInside() {
        return held >= 0;
    }

    @ForceInline
    private boolean end() {
        int stripe = held;
        if (stripe < 0) {
            return false;
        }
        if (Log.isAsync) {
            ticket = Stripes.take(stripe);
        } else {
            Stripes.free(stripe, ticket);
        }
        owed = stripe;
        held = -1;
        return true;
    }

    @ForceInline
    private void access(int op, int type, int stripe, long value) {
        put(isVolatile ? op + Op.VOLATILE : op, type, stripe, site, ticket, index, object, value);
        owed = 0;
        leave();
    }

    @DontInline
    public void read(boolean value) {
        int stripe = held;
        if (end()) {
            access(Op.READ, Values.BOOLEAN, stripe, value ? 1 : 0);
        }
    }

    @DontInline
    public void read(int value) {
        int stripe = held;
        if (end()) {
            access(Op.READ, Values.INTEGER, stripe, value);
        }
    }

    @DontInline
    public void read(long value) {
        int stripe = held;
        if (end()) {
            access(Op.READ, Values.INTEGER, stripe, value);
        }
    }

    public void read(float value) {
        read((double) value);
    }

    @DontInline
    public void read(double value) {
        int stripe = held;
        if (end()) {
            access(Op.READ, Values.FLOAT, stripe, Double.doubleToRawLongBits(value));
        }
    }

    @DontInline
    public void read(Object value) {
        int stripe = held;
        if (end()) {
            int type = Values.type(value);
            access(Op.READ, type, stripe, Values.bits(value, type, this));
        }
    }

    @DontInline
    public void wrote(boolean value) {
        int stripe = held;
        if (end()) {
            access(Op.WRITE, Values.BOOLEAN, stripe, value ? 1 : 0);
        }
    }

    @DontInline
    public void wrote(int value) {
        int stripe = held;
        if (end()) {
            access(Op.WRITE, Values.INTEGER, stripe, value);
        }
    }

    @DontInline
    public void wrote(long value) {
        int stripe = held;
        if (end()) {
            access(Op.WRITE, Values.INTEGER, stripe, value);
        }
    }

    public void wrote(float value) {
        wrote((double) value);
    }

    @DontInline
    public void wrote(double value) {
        int stripe = held;
        if (end()) {
            access(Op.WRITE, Values.FLOAT, stripe, Double.doubleToRawLongBits(value));
        }
    }

    @DontInline
    public void wrote(Object value) {
        int stripe = held;
        if (end()) {
            int type = Values.type(value);
            access(Op.WRITE, type, stripe, Values.bits(value, type, this));
        }
    }

    /** The end of an atomic read-modify-write. */
    void changed(Object old, Object value) {
        int stripe = held;
        if (end()) {
            int type = Values.type(old);
            put(Op.OLD, type, 0, 0, 0, 0, 0, Values.bits(old, type, this));
            type = Values.type(value);
            put(Op.RMW, type, stripe, site, ticket, index, object, Values.bits(value, type, this));
            owed = 0;
            leave();
        }
    }

    // Call stacks.

    /** A method of the program is entered. */
    public static ThreadLog entered(int site) {
        ThreadLog log = current();
        if (!log.isIdle) {
            log.enter(site);
        }
        return log;
    }

    @ForceInline
    private void enter(int site) {
        int now = depth + 1;
        if (now >= calling.length) {
            grow(now);
        }
        if (now < calling.length) {
            calling[now] = site;
        }
        depth = now;
        hasMoved = true;
    }

    @DontInline
    private void grow(int needed) {
        if (needed <= DEEPEST) {
            calling = java.util.Arrays.copyOf(calling, Math.min(Math.max(64, 2 * needed), DEEPEST + 1));
        }
    }

    /** The method at this depth calls another one, which may be the program's. */
    public void calling(int depth, int site) {
        int[] calling = this.calling;
        if (depth < calling.length) {
            calling[depth] = site;
        }
    }

    /** The method at this depth is left. */
    public void left(int depth) {
        caught(depth - 1);
    }

    /** The method at this depth has caught an exception. */
    public void caught(int depth) {
        if (!isIdle) {
            this.depth = depth;
            if (depth < least) {
                least = depth;
            }
            hasMoved = true;
        }
    }

    /** Where the innermost method of the program called last, or 0. */
    int here() {
        return depth < calling.length ? calling[depth] : 0;
    }

    /**
     * Records how the stack has changed since the last record. Everything is up to date after each record, so it may fail in
     * between, for want of stack.
     */
    @DontInline
    private boolean tellStack() {
        hasMoved = false;
        int calls = Math.max(depth - 1, 0);
        if (calls >= calling.length) {
            if (!isTooDeep && calls > 0) {
                put(Op.STACK_UNKNOWN, 0, 0, 0, 0, 0, 0, 0);
                isTooDeep = true;
            }
            return room();
        }
        int same = Math.max(Math.min(told, least - 1), 0);
        if (calls > same) {
            for (int i = same + 1; i <= calls; i++) {
                put(Op.STACK_CALL, 0, 0, calling[i], 0, 0, 0, told - (i - 1));
                told = i;
                least = i + 1;
            }
        } else if (told > calls || isTooDeep) {
            put(Op.STACK_RETURN, 0, 0, 0, 0, 0, 0, told - calls);
        }
        told = calls;
        least = depth;
        isTooDeep = false;
        return room();
    }

    // Monitors of synchronized methods.

    void push(Object monitor) {
        if (synchronised == monitors.length) {
            monitors = java.util.Arrays.copyOf(monitors, synchronised * 2);
        }
        monitors[synchronised++] = monitor;
    }

    Object pop() {
        if (synchronised == 0) {
            return null;
        }
        Object monitor = monitors[--synchronised];
        monitors[synchronised] = null;
        return monitor;
    }

    // Calls that order threads.

    void call(long channel) {
        if (isIdle) {
            return;
        }
        if (open == calls.length) {
            calls = java.util.Arrays.copyOf(calls, open * 2);
        }
        calls[open++] = channel;
        enter();
    }

    void returned() {
        if (isIdle || open == 0) {
            return;
        }
        enter();
        open--;
        if (open < Long.SIZE && (keys & 1L << open) != 0) {
            keys &= ~(1L << open);
            tell(Op.UNHOLD, 0, 0, calls[open], 1);
        }
    }

    /** The call has the entry of a map to itself. */
    void holdKey() {
        if (open > 0 && open <= Long.SIZE) {
            keys |= 1L << open - 1;
        }
    }

    /** Whether the thread has not come after the initialisation of this class yet. */
    boolean isFirstUse(int type) {
        int word = type >> 6;
        if (word >= initialised.length) {
            initialised = java.util.Arrays.copyOf(initialised, Math.max(word + 1, initialised.length * 2));
        }
        long bit = 1L << (type & 63);
        if ((initialised[word] & bit) != 0) {
            return false;
        }
        initialised[word] |= bit;
        return true;
    }
}
