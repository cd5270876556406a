package foresee.jvm;

import java.util.Collection;
import java.util.Enumeration;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Exchanger;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.BaseStream;

/**
 * Calls of the JDK that order threads or that read and change collections.
 *
 * <p>An object that orders threads in a way that is not followed in detail is a channel: each call of it is between two steps on
 * the channel, and so is each step of the program that is made during the call. All steps on one channel are in one order, so
 * whatever the object hands from one thread to another is ordered. What is not known to belong to one object goes through the
 * global channel.
 */
public final class Calls {
    // What a call does to a plain collection.
    static final int READ = 1;
    static final int WRITE = 2;
    /** Reads, and returns a part or a view of the collection. */
    static final int VIEW = 3;
    /** Changes it, with a function of the program that is called for the entry. */
    static final int COMPUTE = 4;
    /** Changes it, and tells nothing about it, unless it is a set. */
    static final int ADD = 0;

    // What the result of a call tells about the calls of other threads.
    static final int NOTHING = 0;
    /** It was handed over in an earlier one. */
    static final int ELEMENT = 1;
    /** The same, and it is no longer there. */
    static final int REMOVED = 2;
    /** The same, unless this call made it. */
    static final int MADE = 3;
    /** The arguments may have been handed over in earlier ones. */
    static final int ARGUMENTS = 4;
    /** It depends on all changes. */
    static final int ALL = 5;

    private enum Kind { NONE, PLAIN, CHANNEL, GLOBAL, STREAM }

    private static final ClassValue<Kind> KINDS = new ClassValue<>() {
        @Override
        protected Kind computeValue(Class<?> type) {
            return kind(type);
        }
    };

    private Calls() {}

    // At transformation.

    private static final Set<String> COLLECTIONS = Set.of("Collection", "List", "Set", "Map", "Queue", "Deque", "SortedMap", "SortedSet",
            "NavigableMap", "NavigableSet", "SequencedCollection", "SequencedSet", "SequencedMap", "Iterator", "ListIterator", "Enumeration",
            "ArrayList", "LinkedList", "HashMap", "LinkedHashMap", "TreeMap", "HashSet", "LinkedHashSet", "TreeSet", "ArrayDeque",
            "PriorityQueue", "Vector", "Stack", "Hashtable", "Properties", "BitSet", "WeakHashMap", "IdentityHashMap", "EnumMap", "EnumSet",
            "AbstractCollection", "AbstractList", "AbstractSet", "AbstractMap", "AbstractQueue", "AbstractSequentialList", "Dictionary");

    private static final Set<String> STREAMS = Set.of("InputStream", "OutputStream", "Reader", "Writer", "BufferedReader", "BufferedWriter",
            "InputStreamReader", "OutputStreamWriter", "DataInputStream", "DataOutputStream", "ObjectInputStream", "ObjectOutputStream",
            "BufferedInputStream", "BufferedOutputStream", "PrintWriter", "PipedInputStream", "PipedOutputStream", "PipedReader", "PipedWriter");

    /** Classes that programs implement, or that no thread can communicate through. */
    private static final Set<String> UNTOUCHED = Set.of("TimeUnit", "ThreadLocalRandom", "Callable", "ThreadFactory", "RejectedExecutionHandler",
            "Executors", "ForkJoinPool$ForkJoinWorkerThreadFactory", "Delayed");

    /** Whether calls of this method of the JDK are followed; what kind of object it is, is seen when it is called. */
    static boolean isFollowed(String owner, String name) {
        if (owner.startsWith("java/util/concurrent/")) {
            String type = owner.substring("java/util/concurrent/".length());
            return !UNTOUCHED.contains(type) && !type.endsWith("Exception") && !type.startsWith("Flow$") || type.equals("TimeUnit") && name.equals("sleep");
        }
        if (owner.startsWith("java/util/stream/")) {
            return owner.endsWith("Stream");
        }
        if (owner.startsWith("java/util/")) {
            return COLLECTIONS.contains(owner.substring("java/util/".length()));
        }
        if (owner.startsWith("java/io/")) {
            return STREAMS.contains(owner.substring("java/io/".length()));
        }
        if (owner.equals("java/text/SimpleDateFormat") || owner.equals("java/text/DateFormat") || owner.equals("java/text/Format")) {
            // They work on a calendar of their own.
            return name.equals("format") || name.startsWith("parse") || name.startsWith("set");
        }
        return owner.equals("java/lang/StringBuffer") || owner.startsWith("java/net/") || owner.startsWith("java/nio/channels/")
                || owner.equals("java/lang/Iterable") || owner.equals("java/lang/Process");
    }

    /** Whether nothing is known about what calls of this class do. */
    static boolean isUnknown(String owner) {
        return owner.equals("sun/misc/Unsafe") || owner.equals("jdk/internal/misc/Unsafe");
    }

    static int effect(String name) {
        return switch (name) {
            case "iterator", "listIterator", "keySet", "values", "entrySet", "subList", "headMap", "tailMap", "subMap", "headSet", "tailSet",
                 "subSet", "descendingMap", "descendingSet", "descendingIterator", "descendingKeySet", "navigableKeySet", "elements", "keys",
                 "reversed", "asReadLock", "asWriteLock", "asReadWriteLock", "readLock", "writeLock", "newCondition" -> VIEW;
            case "get", "getFirst", "getLast", "contains", "containsKey", "containsValue", "containsAll", "isEmpty", "size", "hasNext", "next",
                 "hasPrevious", "previous", "nextIndex", "previousIndex", "hasMoreElements", "nextElement", "peek", "peekFirst", "peekLast",
                 "element", "first", "last", "firstKey", "lastKey", "firstEntry", "lastEntry", "indexOf", "lastIndexOf", "toArray", "stream",
                 "parallelStream", "spliterator", "forEach", "equals", "hashCode", "toString", "getOrDefault", "ceiling", "ceilingKey",
                 "ceilingEntry", "floor", "floorKey", "floorEntry", "higher", "higherKey", "higherEntry", "lower", "lowerKey", "lowerEntry",
                 "comparator", "cardinality", "nextSetBit", "nextClearBit", "length", "getProperty", "clone", "elementAt", "firstElement",
                 "lastElement", "capacity", "search", "empty" -> READ;
            case "add", "addFirst", "addLast", "addElement", "offer", "offerFirst", "offerLast", "addAll", "clear", "put" -> ADD;
            case "compute", "computeIfAbsent", "computeIfPresent", "merge" -> COMPUTE;
            default -> WRITE;
        };
    }

    /** What a call of a queue may wait for: an element (0), room (1), or neither. */
    static int waitsFor(String name) {
        return switch (name) {
            case "take", "takeFirst", "takeLast" -> 0;
            case "put", "putFirst", "putLast", "transfer" -> 1;
            default -> -1;
        };
    }

    static final String STAMPED = "java/util/concurrent/locks/StampedLock";

    /** How a thread has a stamped lock after a call that returned a stamp, or -1 if that does not change. */
    static int hold(String name) {
        return switch (name) {
            case "writeLock", "writeLockInterruptibly", "tryWriteLock", "tryConvertToWriteLock" -> 0;
            case "readLock", "readLockInterruptibly", "tryReadLock", "tryConvertToReadLock" -> 1;
            case "tryOptimisticRead", "tryConvertToOptimisticRead" -> 2;
            default -> -1;
        };
    }

    /** Whether a thread no longer has a stamped lock when such a call begins. */
    static boolean endsHold(String name) {
        return name.startsWith("unlock") || name.startsWith("tryUnlock") || name.equals("validate");
    }

    /** What a call's result tells. */
    static int tells(String owner, String name, String type) {
        if (owner.equals("java/util/concurrent/Semaphore") || owner.equals(STAMPED)) {
            // What they do is recorded as such.
            return NOTHING;
        }
        char result = type.charAt(type.indexOf(')') + 1);
        boolean hasObject = type.indexOf('L') > 0 && type.indexOf('L') < type.indexOf(')');
        switch (name) {
            case "forEach", "forEachOrdered", "toArray", "stream", "parallelStream", "spliterator", "toString", "clone", "drainTo", "containsAll", "equals",
                 "reduce", "search", "reduceKeys", "reduceValues", "reduceEntries", "searchKeys", "searchValues", "searchEntries" -> {
                return ALL;
            }
            case "computeIfAbsent", "computeIfPresent", "compute", "merge" -> {
                return MADE;
            }
            case "append", "insert", "deleteCharAt", "delete", "reverse" -> {
                return NOTHING;
            }
            case "exchange", "take", "poll", "pollFirst", "pollLast", "remove", "removeFirst", "removeLast", "pop", "takeFirst", "takeLast", "pollFirstEntry", "pollLastEntry" -> {
                return result == 'L' ? REMOVED : result == 'V' ? NOTHING : ARGUMENTS;
            }
            default -> {
                return switch (result) {
                    case 'V' -> NOTHING;
                    case 'L' -> ELEMENT;
                    case '[' -> ALL;
                    case 'Z' -> hasObject ? ARGUMENTS : ALL;
                    default -> ALL;
                };
            }
        }
    }

    // At run time.

    private static Kind kind(Class<?> type) {
        if (type.isHidden()) {
            return Kind.NONE;
        }
        Class<?> jdk = type;
        while (jdk != null && !Transformer.isJdk(jdk.getName().replace('.', '/'))) {
            jdk = jdk.getSuperclass();
        }
        if (jdk == null || jdk == Object.class) {
            return Kind.NONE;
        }
        String name = jdk.getName();
        if (name.startsWith("java.util.concurrent.")) {
            String simple = name.substring("java.util.concurrent.".length());
            int nested = simple.indexOf('$');
            return switch (nested < 0 ? simple : simple.substring(0, nested)) {
                // Their own code takes the steps.
                case "ForkJoinPool", "ForkJoinTask", "ForkJoinWorkerThread", "RecursiveTask", "RecursiveAction", "CountedCompleter", "CompletableFuture",
                     "ThreadPoolExecutor", "ScheduledThreadPoolExecutor", "ThreadPerTaskExecutor", "AbstractExecutorService", "FutureTask", "Executors",
                     "CountDownLatch", "CyclicBarrier", "Phaser", "Exchanger", "SubmissionPublisher" -> Kind.NONE;
                // To ask for one of its two locks says nothing about other threads.
                case "locks.ReentrantReadWriteLock" -> Kind.NONE;
                case "StructuredTaskScope" -> Kind.GLOBAL;
                default -> Kind.CHANNEL;
            };
        }
        if (BaseStream.class.isAssignableFrom(type)) {
            return Kind.STREAM;
        }
        if (name.startsWith("java.util.Collections$Synchronized") || name.startsWith("java.util.Vector") || name.startsWith("java.util.Stack")
                || name.startsWith("java.util.Hashtable") || name.startsWith("java.util.Properties") || name.equals("java.lang.StringBuffer")) {
            return Kind.CHANNEL;
        }
        if (name.startsWith("java.util.ImmutableCollections") || name.startsWith("java.util.Collections$Empty")) {
            return Kind.NONE;
        }
        if (name.startsWith("java.util.") || name.equals("java.text.SimpleDateFormat")) {
            return Kind.PLAIN;
        }
        if (name.startsWith("java.text.")) {
            return Kind.NONE;
        }
        if (name.startsWith("java.io.ByteArray") || name.startsWith("java.io.String") || name.startsWith("java.io.CharArray")
                || name.startsWith("java.io.File") || name.equals("java.io.PrintStream")) {
            return Kind.NONE;
        }
        return name.startsWith("java.lang.Iterable") ? Kind.NONE : Kind.GLOBAL;
    }

    /** Before a call that is followed, with two of its arguments. Each is matched by {@code end} or {@code threw}. */
    public static void begin(Object receiver, Object first, Object second, int effect, int site) {
        ThreadLog log = ThreadLog.current();
        Kind kind = receiver == null ? Kind.NONE : KINDS.get(receiver.getClass());
        if ((effect == ADD || effect == WRITE || effect == COMPUTE) && Log.isOn && (kind == Kind.CHANNEL || receiver instanceof Exchanger)) {
            give(first, second, Ids.root(receiver, log), log);
        }
        long channel = switch (kind) {
            case CHANNEL -> Ids.root(receiver, log);
            case GLOBAL -> Threads.GLOBAL;
            case STREAM -> ((BaseStream<?, ?>) receiver).isParallel() ? Threads.GLOBAL : 0;
            default -> 0;
        };
        if (kind == Kind.PLAIN) {
            int op = effect == READ || effect == VIEW ? Op.COLLECTION_READ : Op.COLLECTION_WRITE;
            boolean isBlind = effect == ADD && !(receiver instanceof Set);
            log.note(op, site, Ids.root(receiver, log), isBlind ? 1 : 0);
        }
        log.call(channel);
        if (effect == COMPUTE && first != null && receiver instanceof ConcurrentHashMap) {
            element(Op.KEY, first, channel, log);
            log.holdKey();
        }
    }

    /** Hands the arguments over, before the call begins: whoever gets them afterwards comes after this. */
    private static void give(Object first, Object second, long channel, ThreadLog log) {
        if (first != null) {
            element(Op.GIVE, first, channel, log);
        }
        if (second != null) {
            element(Op.GIVE, second, channel, log);
        }
        if (first == null && second == null) {
            log.tell(Op.GIVE, 0, 0, channel, 0);
        }
    }

    private static void element(int op, Object element, long channel, ThreadLog log) {
        int type = Values.type(element);
        log.tell(op, type, 0, channel, Values.bits(element, type, log));
    }

    /** After a call; {@code tells} is what its result tells, as {@code tells} says. */
    public static void end(Object result, Object receiver, Object first, Object second, int effect, int tells) {
        ThreadLog log = ThreadLog.current();
        log.returned();
        if (tells != NOTHING && Log.isOn && receiver != null) {
            Kind kind = KINDS.get(receiver.getClass());
            if (kind == Kind.CHANNEL || receiver instanceof Exchanger) {
                learn(result, first, second, tells, Ids.root(receiver, log), log);
            } else if (kind == Kind.PLAIN && effect == ADD && result != null) {
                log.tell(Op.TOLD, 0, 0, Ids.root(receiver, log), 0);
            }
        }
        if (receiver instanceof CompletionService<?> && result instanceof Future<?>) {
            // The submission returns a future that may have ended, too, but the program has not learnt that.
            log.note(Op.LOOK, 0, Ids.of(result, log), 0);
        }
        if (effect == VIEW && result != null && isView(result)) {
            Ids.link(result, receiver, log);
        }
    }

    private static void learn(Object result, Object first, Object second, int tells, long channel, ThreadLog log) {
        switch (tells) {
            case ELEMENT, REMOVED, MADE -> {
                if (result != null) {
                    element(tells == REMOVED ? Op.REMOVED : Op.GOT, result, channel, log);
                    if (tells == MADE) {
                        element(Op.GIVE, result, channel, log);
                    }
                }
            }
            case ARGUMENTS -> {
                if (first != null) {
                    element(Op.GOT, first, channel, log);
                }
                if (second != null) {
                    element(Op.GOT, second, channel, log);
                }
            }
            default -> log.tell(Op.TOLD, 0, 0, channel, 0);
        }
    }

    private static boolean isView(Object result) {
        return result instanceof Iterator || result instanceof Collection || result instanceof Map || result instanceof Enumeration
                || result instanceof java.util.concurrent.locks.Lock || result instanceof java.util.concurrent.locks.ReadWriteLock;
    }

    public static void threw(Throwable thrown, int site) {
        ThreadLog.current().returned();
        Threads.threw(thrown, site);
    }

    /** Before a call that may wait for an element, or for room for one. */
    public static void waits(Object queue, int forRoom) {
        if (Log.isOn && queue instanceof BlockingQueue<?> blocking && (forRoom == 0 || blocking.remainingCapacity() < Integer.MAX_VALUE / 2)
                && KINDS.get(queue.getClass()) == Kind.CHANNEL) {
            ThreadLog log = ThreadLog.current();
            log.tell(Op.WAITS, 0, 0, Ids.root(queue, log), forRoom);
        }
    }

    /** After a stamped lock has returned a stamp; 0 is none. */
    public static void hold(long stamp, Object lock, int how) {
        // What is read without a stamp is not used, either.
        if ((stamp != 0 || how == 2) && Log.isOn) {
            ThreadLog log = ThreadLog.current();
            log.tell(Op.HOLD, 0, 0, Ids.of(lock, log), how);
        }
    }

    public static void unhold(Object lock) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            log.tell(Op.UNHOLD, 0, 0, Ids.of(lock, log), 0);
        }
    }

    /** Before a call that is not followed. */
    public static void unfollowed(String why) {
        if (Log.isOn) {
            Log.unordered(why);
        }
    }

    /** A method of the JDK is entered in which everything is in the order of the global channel. */
    public static void enter() {
        ThreadLog.current().call(Threads.GLOBAL);
    }

    public static void leave() {
        ThreadLog.current().returned();
    }

    public static boolean interrupted(int site) {
        boolean was = Thread.interrupted();
        Order.answered(was, Thread.currentThread());
        return was;
    }

    public static void sleep(long millis, int site) throws InterruptedException {
        sleep(millis, 0, site);
    }

    public static void sleep(long millis, int nanos, int site) throws InterruptedException {
        try {
            Thread.sleep(millis, nanos);
        } catch (InterruptedException e) {
            Threads.threw(e, site);
            throw e;
        }
    }

    public static void unpark(Thread thread, int site) {
        Order.post(thread);
        LockSupport.unpark(thread);
    }

    public static void park(int site) {
        LockSupport.park();
        Threads.look(Thread.currentThread(), site);
    }

    public static void park(Object blocker, int site) {
        LockSupport.park(blocker);
        Threads.look(Thread.currentThread(), site);
    }

    public static void parkNanos(long nanos, int site) {
        LockSupport.parkNanos(nanos);
        Threads.look(Thread.currentThread(), site);
    }

    public static void parkNanos(Object blocker, long nanos, int site) {
        LockSupport.parkNanos(blocker, nanos);
        Threads.look(Thread.currentThread(), site);
    }

    public static void parkUntil(long deadline, int site) {
        LockSupport.parkUntil(deadline);
        Threads.look(Thread.currentThread(), site);
    }

    public static void parkUntil(Object blocker, long deadline, int site) {
        LockSupport.parkUntil(blocker, deadline);
        Threads.look(Thread.currentThread(), site);
    }
}
