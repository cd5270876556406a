package foresee.jvm;

/** Copies and fills arrays, element by element, as the program would see it. */
public final class Arraycopy {
    private Arraycopy() {}

    public static void copy(Object from, int start, Object to, int target, int length, int site) {
        boolean isPossible = from != null && to != null && from.getClass().isArray() && from.getClass() == to.getClass() && length >= 0
                && start >= 0 && target >= 0 && (long) start + length <= java.lang.reflect.Array.getLength(from)
                && (long) target + length <= java.lang.reflect.Array.getLength(to);
        if (!isPossible || !Log.isOn) {
            // It fails, or copies between arrays of different types.
            Local.share(from);
            System.arraycopy(from, start, to, target, length);
            return;
        }
        if (Local.areOwn(from, to)) {
            System.arraycopy(from, start, to, target, length);
            return;
        }
        boolean isBackward = from == to && start < target;
        for (int k = 0; k < length; k++) {
            int i = isBackward ? length - 1 - k : k;
            move(from, start + i, to, target + i, site);
        }
    }

    private static void move(Object from, int i, Object to, int k, int site) {
        if (from instanceof int[] a) {
            Rt.iastore((int[]) to, k, Rt.iaload(a, i, site), site);
        } else if (from instanceof long[] a) {
            Rt.lastore((long[]) to, k, Rt.laload(a, i, site), site);
        } else if (from instanceof float[] a) {
            Rt.fastore((float[]) to, k, Rt.faload(a, i, site), site);
        } else if (from instanceof double[] a) {
            Rt.dastore((double[]) to, k, Rt.daload(a, i, site), site);
        } else if (from instanceof char[] a) {
            Rt.castore((char[]) to, k, Rt.caload(a, i, site), site);
        } else if (from instanceof short[] a) {
            Rt.sastore((short[]) to, k, Rt.saload(a, i, site), site);
        } else if (from instanceof Object[] a) {
            Rt.aaloadBegin(a, i, site);
            Object value = a[i];
            Rt.aaloadEnd(value);
            Rt.aastore((Object[]) to, k, value, site);
        } else {
            Rt.bastore(to, k, Rt.baload(from, i, site), site);
        }
    }

    public static void fill(int[] array, int value, int site) {
        for (int i = 0; i < array.length; i++) {
            Rt.iastore(array, i, value, site);
        }
    }

    public static void fill(long[] array, long value, int site) {
        for (int i = 0; i < array.length; i++) {
            Rt.lastore(array, i, value, site);
        }
    }

    public static void fill(double[] array, double value, int site) {
        for (int i = 0; i < array.length; i++) {
            Rt.dastore(array, i, value, site);
        }
    }

    public static void fill(boolean[] array, boolean value, int site) {
        for (int i = 0; i < array.length; i++) {
            Rt.bastore(array, i, value ? 1 : 0, site);
        }
    }

    public static void fill(byte[] array, byte value, int site) {
        for (int i = 0; i < array.length; i++) {
            Rt.bastore(array, i, value, site);
        }
    }

    public static void fill(char[] array, char value, int site) {
        for (int i = 0; i < array.length; i++) {
            Rt.castore(array, i, value, site);
        }
    }

    public static void fill(Object[] array, Object value, int site) {
        for (int i = 0; i < array.length; i++) {
            Rt.aastore(array, i, value, site);
        }
    }
}
