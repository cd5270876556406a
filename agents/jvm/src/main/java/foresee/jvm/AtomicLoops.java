package foresee.jvm;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BinaryOperator;
import java.util.function.IntBinaryOperator;
import java.util.function.IntUnaryOperator;
import java.util.function.LongBinaryOperator;
import java.util.function.LongUnaryOperator;
import java.util.function.UnaryOperator;

/** Operations of atomic objects that call the program, or are more than one step. */
public final class AtomicLoops {
    private AtomicLoops() {}

    private static int get(AtomicInteger object, int site) {
        object.get();
        ThreadLog log = Rt.begin(object, 0, site);
        int value = object.get();
        log.read(value);
        return value;
    }

    private static boolean change(AtomicInteger object, int old, int value, int site) {
        ThreadLog log = Rt.begin(object, 0, site);
        int found = object.get();
        boolean isChanged = object.compareAndSet(old, value);
        Rt.changed(log, isChanged, found, value);
        return isChanged;
    }

    public static int getAndUpdate(AtomicInteger object, IntUnaryOperator update, int site) {
        while (true) {
            int old = get(object, site);
            if (change(object, old, update.applyAsInt(old), site)) {
                return old;
            }
        }
    }

    public static int updateAndGet(AtomicInteger object, IntUnaryOperator update, int site) {
        while (true) {
            int old = get(object, site);
            int value = update.applyAsInt(old);
            if (change(object, old, value, site)) {
                return value;
            }
        }
    }

    public static int getAndAccumulate(AtomicInteger object, int other, IntBinaryOperator join, int site) {
        return getAndUpdate(object, old -> join.applyAsInt(old, other), site);
    }

    public static int accumulateAndGet(AtomicInteger object, int other, IntBinaryOperator join, int site) {
        return updateAndGet(object, old -> join.applyAsInt(old, other), site);
    }

    private static long get(AtomicLong object, int site) {
        object.get();
        ThreadLog log = Rt.begin(object, 0, site);
        long value = object.get();
        log.read(value);
        return value;
    }

    private static boolean change(AtomicLong object, long old, long value, int site) {
        ThreadLog log = Rt.begin(object, 0, site);
        long found = object.get();
        boolean isChanged = object.compareAndSet(old, value);
        Rt.changed(log, isChanged, found, value);
        return isChanged;
    }

    public static long getAndUpdate(AtomicLong object, LongUnaryOperator update, int site) {
        while (true) {
            long old = get(object, site);
            if (change(object, old, update.applyAsLong(old), site)) {
                return old;
            }
        }
    }

    public static long updateAndGet(AtomicLong object, LongUnaryOperator update, int site) {
        while (true) {
            long old = get(object, site);
            long value = update.applyAsLong(old);
            if (change(object, old, value, site)) {
                return value;
            }
        }
    }

    public static long getAndAccumulate(AtomicLong object, long other, LongBinaryOperator join, int site) {
        return getAndUpdate(object, old -> join.applyAsLong(old, other), site);
    }

    public static long accumulateAndGet(AtomicLong object, long other, LongBinaryOperator join, int site) {
        return updateAndGet(object, old -> join.applyAsLong(old, other), site);
    }

    private static Object get(AtomicReference<Object> object, int site) {
        object.get();
        ThreadLog log = Rt.begin(object, 0, site);
        Object value = object.get();
        log.read(value);
        return value;
    }

    private static boolean change(AtomicReference<Object> object, Object old, Object value, int site) {
        ThreadLog log = Rt.begin(object, 0, site);
        Object found = object.get();
        boolean isChanged = object.compareAndSet(old, value);
        Rt.changed(log, isChanged, found, value);
        return isChanged;
    }

    public static Object getAndUpdate(AtomicReference<Object> object, UnaryOperator<Object> update, int site) {
        while (true) {
            Object old = get(object, site);
            if (change(object, old, update.apply(old), site)) {
                return old;
            }
        }
    }

    public static Object updateAndGet(AtomicReference<Object> object, UnaryOperator<Object> update, int site) {
        while (true) {
            Object old = get(object, site);
            Object value = update.apply(old);
            if (change(object, old, value, site)) {
                return value;
            }
        }
    }

    public static Object getAndAccumulate(AtomicReference<Object> object, Object other, BinaryOperator<Object> join, int site) {
        return getAndUpdate(object, old -> join.apply(old, other), site);
    }

    public static Object accumulateAndGet(AtomicReference<Object> object, Object other, BinaryOperator<Object> join, int site) {
        return updateAndGet(object, old -> join.apply(old, other), site);
    }

    public static int intValue(AtomicInteger object, int site) {
        return get(object, site);
    }

    public static long longValue(AtomicInteger object, int site) {
        return get(object, site);
    }

    public static float floatValue(AtomicInteger object, int site) {
        return get(object, site);
    }

    public static double doubleValue(AtomicInteger object, int site) {
        return get(object, site);
    }

    public static String toString(AtomicInteger object, int site) {
        return Integer.toString(get(object, site));
    }

    public static int intValue(AtomicLong object, int site) {
        return (int) get(object, site);
    }

    public static long longValue(AtomicLong object, int site) {
        return get(object, site);
    }

    public static float floatValue(AtomicLong object, int site) {
        return get(object, site);
    }

    public static double doubleValue(AtomicLong object, int site) {
        return get(object, site);
    }

    public static String toString(AtomicLong object, int site) {
        return Long.toString(get(object, site));
    }

    public static String toString(AtomicBoolean object, int site) {
        object.get();
        ThreadLog log = Rt.begin(object, 0, site);
        boolean value = object.get();
        log.read(value);
        return Boolean.toString(value);
    }

    public static String toString(AtomicReference<Object> object, int site) {
        return String.valueOf(get(object, site));
    }
}
