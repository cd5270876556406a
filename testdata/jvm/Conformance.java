import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.IntSupplier;
import java.util.function.IntUnaryOperator;

/** Every kind of field, array and call, with the value that each must have. */
public class Conformance {
    boolean z;
    byte b;
    short s;
    char c;
    int i;
    long j;
    float f;
    double d;
    Object o;
    static boolean sz;
    static byte sb;
    static short ss;
    static char sc;
    static int si;
    static long sj;
    static float sf;
    static double sd;
    static Object so;
    volatile long vj;

    record Pair(int left, String right) {}

    enum Colour {
        RED, GREEN;

        private static int count = values().length;
        private int uses;
    }

    interface Shape {
        List<String> LOG = new ArrayList<>();

        default int corners() {
            LOG.add("corners");
            return 3;
        }
    }

    static class Base {
        protected int value = 1;
        private int hidden = 2;

        Base(IntSupplier first) {
            value += first.getAsInt();
        }

        int hidden() {
            return hidden;
        }
    }

    static final class Derived extends Base implements Shape {
        private int hidden = 3;
        private final int outer;

        Derived(boolean isLong) {
            super(isLong ? () -> new int[] {7}[0] : new Supplier());
            outer = value;
            value++;
        }

        int sum() {
            return hidden * 100 + hidden() * 10 + super.value + outer;
        }
    }

    private static final class Supplier implements IntSupplier {
        @Override
        public int getAsInt() {
            return 5;
        }
    }

    class Inner {
        int twice() {
            return i * 2;
        }
    }

    private static void check(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    private void fields() {
        z = true;
        b = -3;
        s = -300;
        c = '\uffff';
        i = Integer.MIN_VALUE;
        j = Long.MIN_VALUE;
        f = 1.5f;
        d = Math.PI;
        o = this;
        vj = 5;
        check(z && b == -3 && s == -300 && c == '\uffff' && i == Integer.MIN_VALUE && j == Long.MIN_VALUE, "fields");
        check(f == 1.5f && d == Math.PI && o == this && vj++ == 5 && ++vj == 7, "more fields");
        sz = z;
        sb = b;
        ss = s;
        sc = c;
        si = i;
        sj = j;
        sf = f;
        sd = d;
        so = o;
        check(sz && sb == -3 && ss == -300 && sc == '\uffff' && si == i && sj == j && sf == f && sd == d && so == o, "statics");
        i = 21;
        i += 2;
        i--;
        check(new Inner().twice() == 44, "inner");
    }

    private static void arrays() {
        boolean[] z = {true, false};
        byte[] b = {-1, 2};
        char[] c = {'a', '\uffff'};
        short[] s = {-1, 2};
        int[] i = {1, 2};
        long[] j = {1L << 40, 2};
        float[] f = {1.5f, 2};
        double[] d = {2.5, 2};
        String[][] o = {{"a"}, {"b", "c"}};
        z[1] |= z[0];
        b[0] += 2;
        c[0]++;
        s[0]--;
        i[0] += i[1];
        j[0] += j[1];
        f[0] *= f[1];
        d[0] *= d[1];
        o[0][0] += o[1][1];
        check(z[1] && b[0] == 1 && c[0] == 'b' && c[1] == '\uffff' && s[0] == -2 && i[0] == 3, "arrays");
        check(j[0] == (1L << 40) + 2 && f[0] == 3 && d[0] == 5 && o[0][0].equals("ac"), "more arrays");
        int[] copy = new int[4];
        System.arraycopy(new int[] {1, 2, 3, 4}, 0, copy, 0, 4);
        System.arraycopy(copy, 0, copy, 1, 3);
        check(Arrays.equals(copy, new int[] {1, 1, 2, 3}), "copy");
        Arrays.fill(copy, 9);
        check(copy[3] == 9 && copy.clone()[0] == 9, "fill");
        for (int wrong : new int[] {-1, 2}) {
            try {
                i[wrong] = 1;
                check(false, "bounds");
            } catch (ArrayIndexOutOfBoundsException e) {
                check(i.length == 2, "length");
            }
        }
        try {
            Object[] strings = new String[1];
            strings[0] = 1;
            check(false, "store");
        } catch (ArrayStoreException e) {
            check(true, "");
        }
        int[] none = null;
        try {
            none[0] = 1;
            check(false, "null");
        } catch (NullPointerException e) {
            check(true, "");
        }
        Conformance nothing = null;
        try {
            nothing.i++;
            check(false, "null");
        } catch (NullPointerException e) {
            check(true, "");
        }
    }

    private static synchronized int depth(int n) {
        return n == 0 ? 0 : 1 + depth(n - 1);
    }

    private static synchronized int fails() {
        throw new IllegalStateException();
    }

    private static int endless(int n) {
        si = n;
        return endless(n + 1) + si;
    }

    private static void calls() {
        check(depth(3) == 3, "recursion");
        try {
            fails();
        } catch (IllegalStateException e) {
            check(!Thread.holdsLock(Conformance.class), "released");
        }
        try {
            new Object().notify();
            check(false, "monitor");
        } catch (IllegalMonitorStateException e) {
            check(true, "");
        }
        for (int i = 0; i < 3; i++) {
            try {
                endless(0);
                check(false, "stack");
            } catch (StackOverflowError e) {
                si = 4;
                check(si == 4, "after the overflow");
            }
        }
        AtomicInteger number = new AtomicInteger(1);
        IntSupplier next = number::incrementAndGet;
        IntUnaryOperator add = number::addAndGet;
        check(next.getAsInt() == 2 && add.applyAsInt(3) == 5 && number.getAndIncrement() == 5, "references");
        check(number.compareAndSet(6, 7) && !number.compareAndSet(6, 8) && number.updateAndGet(x -> x * 2) == 14, "atomics");
        check(number.intValue() == 14 && number.toString().equals("14"), "numbers");
        ConcurrentMap<String, Integer> map = new ConcurrentHashMap<>();
        map.put("a", 1);
        Function<String, Integer> lookUp = map::get;
        ArrayList<String> texts = new ArrayList<>();
        Consumer<String> keep = texts::add;
        keep.accept("kept");
        check(lookUp.apply("a") == 1 && texts.get(0).equals("kept"), "bound references");
        AtomicLong big = new AtomicLong();
        check(big.getAndAdd(5) == 0 && big.accumulateAndGet(3, Long::sum) == 8, "long");
        AtomicBoolean flag = new AtomicBoolean();
        check(!flag.getAndSet(true) && flag.get(), "boolean");
        AtomicReference<String> text = new AtomicReference<>("a");
        check(text.getAndUpdate(t -> t + "b").equals("a") && text.get().equals("ab"), "reference");
        AtomicIntegerArray array = new AtomicIntegerArray(2);
        check(array.incrementAndGet(1) == 1 && array.get(0) == 0, "array");
        try {
            array.set(2, 1);
            check(false, "bounds");
        } catch (IndexOutOfBoundsException e) {
            check(true, "");
        }
        List<String> list = new ArrayList<>();
        List.of("x", "y").forEach(list::add);
        check(list.size() == 2 && String.join("", list).equals("xy"), "list");
    }

    public static void main(String[] arguments) throws Exception {
        new Conformance().fields();
        arrays();
        Thread thread = new Thread(null, Conformance::calls, "calls", 256 << 10);
        Throwable[] thrown = new Throwable[1];
        thread.setUncaughtExceptionHandler((t, e) -> thrown[0] = e);
        thread.start();
        thread.join();
        if (thrown[0] != null) {
            throw new AssertionError(thrown[0]);
        }
        check(new Pair(1, "a").equals(new Pair(1, "a")) && new Pair(2, "b").right().equals("b"), "record");
        Colour.GREEN.uses++;
        check(Colour.count == 2 && Colour.valueOf("GREEN").uses == 1, "enum");
        Derived derived = new Derived(true);
        check(derived.sum() == 300 + 20 + 9 + 8 && derived.corners() == 3 && Shape.LOG.size() == 1, "classes");
        check(new Derived(false).value == 7, "other constructor");
        System.out.println("all as it should be");
    }
}
