package foresee.jvm;

import java.util.Collection;
import java.util.Enumeration;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletionService;
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
            default -> WRITE;
        };
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

    /** Before a call that is followed. Each is matched by {@code end} or {@code threw}. */
    public static void begin(Object receiver, int effect, int site) {
        ThreadLog log = ThreadLog.current();
        Kind kind = receiver == null ? Kind.NONE : KINDS.get(receiver.getClass());
        long channel = switch (kind) {
            case CHANNEL -> Ids.root(receiver, log);
            case GLOBAL -> Threads.GLOBAL;
            case STREAM -> ((BaseStream<?, ?>) receiver).isParallel() ? Threads.GLOBAL : 0;
            default -> 0;
        };
        if (kind == Kind.PLAIN) {
            log.note(effect == WRITE ? Op.COLLECTION_WRITE : Op.COLLECTION_READ, site, Ids.root(receiver, log), 0);
        }
        log.call(channel);
    }

    public static void end(Object result, Object receiver, int effect) {
        ThreadLog log = ThreadLog.current();
        log.returned();
        if (receiver instanceof CompletionService<?> && result instanceof Future<?>) {
            // The submission returns a future that may have ended, too, but the program has not learnt that.
            log.note(Op.LOOK, 0, Ids.of(result, log), 0);
        }
        if (effect == VIEW && result != null && isView(result)) {
            Ids.link(result, receiver, log);
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
