package foresee.jvm;

import java.util.Set;
import org.objectweb.asm.Type;

/** Where references may leave the objects of one thread ({@link Local}): what is known of types and of the JDK's methods. */
final class Escapes {
    /** Classes of the JDK, which are not local, nor are objects of classes that extend them. Whatever is not here may be an interface. */
    private static final Set<String> CLASSES = Set.of("java/lang/String", "java/lang/Class", "java/lang/Boolean", "java/lang/Character", "java/lang/Byte",
            "java/lang/Short", "java/lang/Integer", "java/lang/Long", "java/lang/Float", "java/lang/Double", "java/lang/Number", "java/lang/Void",
            "java/lang/Throwable", "java/lang/Exception", "java/lang/RuntimeException", "java/lang/Error", "java/lang/Thread", "java/lang/ThreadGroup",
            "java/lang/ThreadLocal", "java/lang/ClassLoader", "java/lang/Module", "java/lang/Enum", "java/lang/Record", "java/lang/StringBuilder",
            "java/lang/StringBuffer", "java/io/File", "java/io/InputStream", "java/io/OutputStream", "java/io/Reader", "java/io/Writer", "java/io/PrintStream",
            "java/io/PrintWriter", "java/math/BigDecimal", "java/math/BigInteger", "java/nio/ByteBuffer", "java/nio/CharBuffer", "java/nio/charset/Charset",
            "java/net/URL", "java/net/URI", "java/util/ArrayList", "java/util/HashMap", "java/util/HashSet", "java/util/LinkedList", "java/util/TreeMap",
            "java/util/ArrayDeque", "java/util/BitSet", "java/util/Locale", "java/util/Date", "java/util/Calendar", "java/util/TimeZone", "java/util/Random",
            "java/util/UUID", "java/util/Properties", "java/util/Optional", "java/util/regex/Pattern", "java/util/concurrent/TimeUnit",
            "java/util/concurrent/ConcurrentHashMap", "java/util/concurrent/locks/ReentrantLock", "java/util/concurrent/atomic/AtomicInteger",
            "java/util/concurrent/atomic/AtomicLong", "java/util/concurrent/atomic/AtomicBoolean", "java/util/concurrent/atomic/AtomicReference");

    /** Classes whose methods do not keep what they are given. */
    private static final Set<String> FORGETFUL = Set.of("java/lang/Object", "java/lang/String", "java/lang/StringBuilder", "java/lang/StringBuffer", "java/lang/Math",
            "java/lang/StrictMath", "java/lang/Boolean", "java/lang/Character", "java/lang/Byte", "java/lang/Short", "java/lang/Integer", "java/lang/Long",
            "java/lang/Float", "java/lang/Double", "java/lang/Number", "java/lang/Class", "java/lang/Comparable", "java/lang/Runnable", "java/util/Objects",
            "java/util/Comparator", "java/util/concurrent/Callable", "java/lang/CharSequence", "java/lang/AutoCloseable");

    /** Interfaces that the JDK calls no method of that returns an object. */
    private static final Set<String> SILENT = Set.of("java/io/Serializable", "java/lang/Cloneable", "java/lang/Comparable", "java/lang/AutoCloseable", "java/io/Closeable",
            "java/io/Flushable", "java/lang/Runnable", "java/util/RandomAccess", "java/util/EventListener");

    private Escapes() {}

    /** Whether a value of this type may be an object or array that is local. */
    static boolean mayBeLocal(String type) {
        return type.startsWith("[") || type.startsWith("L") && !CLASSES.contains(type.substring(1, type.length() - 1));
    }

    /** Whether a method of this type may be given an object that is local. */
    static boolean mayTakeLocal(String descriptor) {
        if (descriptor.startsWith("()")) {
            return false;
        }
        for (Type argument : Type.getArgumentTypes(descriptor)) {
            if (mayBeLocal(argument.getDescriptor())) {
                return true;
            }
        }
        return false;
    }

    /** Whether objects of this type may have methods that the JDK calls to get an object. */
    static boolean isAsked(String type) {
        return !SILENT.contains(type) && !type.equals("java/lang/Object");
    }

    /** Whether a method of the JDK keeps nothing of what it is given, and returns nothing that holds it. */
    static boolean keepsNothing(String owner, String name, String type) {
        if (FORGETFUL.contains(owner) || owner.startsWith("java/util/function/")) {
            return true;
        }
        return switch (name) {
            case "equals", "hashCode", "toString", "compareTo", "compare", "contains", "containsKey", "containsValue", "indexOf", "lastIndexOf", "remove", "get",
                 "getOrDefault" -> owner.startsWith("java/util/") || owner.startsWith("java/lang/");
            case "print", "println", "printf", "read", "write", "readFully" -> owner.startsWith("java/io/");
            case "identityHashCode" -> owner.equals("java/lang/System");
            case "copyOf", "copyOfRange", "fill", "hash" -> owner.equals("java/util/Arrays") && takesNumbers(type);
            case "sort", "binarySearch", "deepEquals", "deepHashCode", "deepToString", "mismatch" -> owner.equals("java/util/Arrays");
            case "update", "digest" -> owner.startsWith("java/security/") || owner.startsWith("java/util/zip/");
            default -> false;
        };
    }

    /** Whether all arrays that a method takes are of numbers. */
    private static boolean takesNumbers(String type) {
        for (Type argument : Type.getArgumentTypes(type)) {
            if (argument.getSort() == Type.OBJECT || argument.getSort() == Type.ARRAY && argument.getElementType().getSort() == Type.OBJECT) {
                return false;
            }
        }
        return true;
    }
}
