package foresee.jvm;

import java.util.ArrayDeque;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Objects that only one thread can reach: accesses of their fields and elements are not recorded.
 *
 * <p>An object or array that code of the program makes is local to its thread. It is shared, with all that can be reached from it,
 * before a reference to it goes where others may find it: into a field or element of something that is not local, into a static
 * field, into the JDK, or back to the JDK as a result; and when a record needs its number. So every other thread's access comes
 * after that moment, in whatever order threads run, and the accesses before are of no consequence to any question about other
 * orders (docs/capture/filter.md).
 *
 * <p>That nothing was missed is checked: a thread that comes upon an object that is local to another one says so, and nothing is
 * predicted.
 */
public final class Local {
    private static final Unsafe U = Unsafe.getUnsafe();

    private Local() {}

    /** Whether only the current thread can reach the object, which has its state there. */
    @ForceInline
    static boolean isOwn(Object object, long state) {
        return state != 0 && U.getReference(object, state) instanceof ThreadLog owner && owner.thread == Thread.currentThread();
    }

    private static boolean isOwn(Object object) {
        Shapes.Shape shape = Shapes.of(object);
        ThreadLog log = ThreadLog.current();
        return shape.isArray() ? Ids.stateOf(object, log) == log : isOwn(object, shape.state());
    }

    /** Whether only the current thread can reach these arrays. */
    static boolean areOwn(Object one, Object other) {
        ThreadLog log = ThreadLog.current();
        return Ids.stateOf(one, log) == log && Ids.stateOf(other, log) == log;
    }

    /** In the constructor of a class that extends {@code Object}: it has just been made. */
    public static void made(Object object) {
        if (Log.isOn && Log.hasLocals) {
            Shapes.Shape shape = Shapes.of(object);
            ThreadLog log = ThreadLog.current();
            if (shape.state() != 0 && log != ThreadLog.IDLE) {
                U.putReference(object, shape.state(), log);
            }
        }
    }

    /** After an array was made. */
    public static void madeArray(Object array) {
        if (Log.isOn && Log.hasLocals && array != null) {
            Ids.addLocal(array, ThreadLog.current());
        }
    }

    /** Before a reference is stored in a field that is not recorded. */
    public static void storing(Object holder, Object value) {
        if (value != null && Log.isOn && Log.hasLocals && !(holder != null && isOwn(holder))) {
            share(value);
        }
    }

    /** Before a reference goes where other threads may find it. */
    @DontInline
    public static void share(Object object) {
        if (object == null || !Log.isOn || !Log.hasLocals) {
            return;
        }
        Shapes.Shape shape = Shapes.of(object);
        if (shape.state() != 0) {
            if (U.getReference(object, shape.state()) instanceof ThreadLog) {
                Ids.of(object, ThreadLog.current());
            }
        } else if (shape.isArray()) {
            ThreadLog log = ThreadLog.current();
            if (Ids.stateOf(object, log) instanceof ThreadLog) {
                Ids.of(object, log);
            }
        }
    }

    /** A thread comes upon an object that is local to a thread. */
    static void check(Object object, ThreadLog owner, ThreadLog log) {
        if (owner != log) {
            Log.unordered("an object of " + object.getClass().getName() + " was used by two threads, and how they came to share it was not seen");
        }
    }

    /** Shares all that can be reached from an object that is shared now and has this number. */
    static void shareParts(Object object, long id, ThreadLog log) {
        ArrayDeque<Object> left = null;
        Shapes.Shared shared = null;
        Object next = object;
        while (next != null) {
            Shapes.Shape shape = Shapes.of(next);
            int count = next instanceof Object[] array ? array.length : shape.references() == null ? 0 : shape.references().length;
            for (int i = 0; i < count; i++) {
                Object part = next instanceof Object[] array ? array[i] : U.getReference(next, shape.references()[i]);
                if (part == null) {
                    continue;
                }
                if (shared == null) {
                    shared = new Shapes.Shared(id);
                }
                if (wasLocal(part, shared, log)) {
                    if (left == null) {
                        left = new ArrayDeque<>();
                    }
                    left.add(part);
                }
            }
            next = left == null ? null : left.poll();
        }
    }

    /** Shares an object that has no number; whether it was local. */
    private static boolean wasLocal(Object object, Shapes.Shared shared, ThreadLog log) {
        Shapes.Shape shape = Shapes.of(object);
        if (shape.isArray()) {
            return Ids.share(object, shared, log);
        }
        if (shape.state() == 0 || !(U.getReference(object, shape.state()) instanceof ThreadLog owner)) {
            return false;
        }
        check(object, owner, log);
        U.putReferenceRelease(object, shape.state(), shared);
        return true;
    }
}
