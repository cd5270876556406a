package foresee.jvm;

import jdk.internal.vm.annotation.DontInline;

/** What transformed classes call. */
public final class Rt {
    private Rt() {}

    /** Before an access of a field; the object is null if the field is static. */
    @DontInline
    public static ThreadLog begin(Object object, int site) {
        Sites.Site place = Sites.get(site);
        int key = place.key;
        if (key == 0) {
            key = place.resolve(object);
        }
        if (place.type != 0) {
            uses(place.type);
        }
        if (key == Sites.FINAL || !Log.isOn) {
            return ThreadLog.IDLE;
        }
        if (object != null && place.offset == 0) {
            place.offset(object);
        }
        if (object != null && Local.isOwn(object, place.state)) {
            return ThreadLog.IDLE;
        }
        ThreadLog log = ThreadLog.current();
        long id = object == null ? 0 : Ids.of(object, place.tag, log);
        int stripe = place.isWatched ? Stripes.WATCHED : Stripes.of(id, key);
        return log.begin(stripe, id, 0, site, place.isVolatile) ? log : ThreadLog.IDLE;
    }

    /** Before an access of an atomic object or of an element of one. */
    @DontInline
    public static ThreadLog begin(Object object, int index, int site) {
        if (!Log.isOn) {
            return ThreadLog.IDLE;
        }
        ThreadLog log = ThreadLog.current();
        long id = Ids.of(object, log);
        return log.begin(Stripes.of(id, index), id, index, site, true) ? log : ThreadLog.IDLE;
    }

    @DontInline
    private static ThreadLog element(Object array, int index, int site) {
        if (!Log.isOn) {
            return ThreadLog.IDLE;
        }
        ThreadLog log = ThreadLog.current();
        Ids.Entry entry = Ids.entry(array, log);
        if (entry == null || entry.state == log) {
            return ThreadLog.IDLE;
        }
        long id = Ids.idOf(array, entry, log);
        return log.begin(Stripes.of(id, index), id, index, site, false) ? log : ThreadLog.IDLE;
    }

    // Elements of arrays. The first access finds out what is wrong with the array or the index.

    public static int iaload(int[] array, int index, int site) {
        int value = array[index];
        ThreadLog log = element(array, index, site);
        value = array[index];
        log.read(value);
        return value;
    }

    public static long laload(long[] array, int index, int site) {
        long value = array[index];
        ThreadLog log = element(array, index, site);
        value = array[index];
        log.read(value);
        return value;
    }

    public static float faload(float[] array, int index, int site) {
        float value = array[index];
        ThreadLog log = element(array, index, site);
        value = array[index];
        log.read(value);
        return value;
    }

    public static double daload(double[] array, int index, int site) {
        double value = array[index];
        ThreadLog log = element(array, index, site);
        value = array[index];
        log.read(value);
        return value;
    }

    public static char caload(char[] array, int index, int site) {
        char value = array[index];
        ThreadLog log = element(array, index, site);
        value = array[index];
        log.read((int) value);
        return value;
    }

    public static short saload(short[] array, int index, int site) {
        short value = array[index];
        ThreadLog log = element(array, index, site);
        value = array[index];
        log.read((int) value);
        return value;
    }

    /** Arrays of bytes and of booleans share their instructions. */
    public static int baload(Object array, int index, int site) {
        if (array instanceof boolean[] booleans) {
            boolean value = booleans[index];
            ThreadLog log = element(array, index, site);
            value = booleans[index];
            log.read(value);
            return value ? 1 : 0;
        }
        byte[] bytes = (byte[]) array;
        byte value = bytes[index];
        ThreadLog log = element(array, index, site);
        value = bytes[index];
        log.read((int) value);
        return value;
    }

    /** The type of the element is the program's affair, so the access stays where it is, between two calls. */
    public static void aaloadBegin(Object[] array, int index, int site) {
        if (array != null && index >= 0 && index < array.length) {
            element(array, index, site);
        }
    }

    public static void aaloadEnd(Object value) {
        if (Log.isOn) {
            ThreadLog.current().read(value);
        }
    }

    public static void iastore(int[] array, int index, int value, int site) {
        int old = array[index];
        ThreadLog log = element(array, index, site);
        array[index] = value;
        log.wrote(value);
    }

    public static void lastore(long[] array, int index, long value, int site) {
        long old = array[index];
        ThreadLog log = element(array, index, site);
        array[index] = value;
        log.wrote(value);
    }

    public static void fastore(float[] array, int index, float value, int site) {
        float old = array[index];
        ThreadLog log = element(array, index, site);
        array[index] = value;
        log.wrote(value);
    }

    public static void dastore(double[] array, int index, double value, int site) {
        double old = array[index];
        ThreadLog log = element(array, index, site);
        array[index] = value;
        log.wrote(value);
    }

    public static void castore(char[] array, int index, int value, int site) {
        char old = array[index];
        ThreadLog log = element(array, index, site);
        array[index] = (char) value;
        log.wrote((int) (char) value);
    }

    public static void sastore(short[] array, int index, int value, int site) {
        short old = array[index];
        ThreadLog log = element(array, index, site);
        array[index] = (short) value;
        log.wrote((int) (short) value);
    }

    public static void bastore(Object array, int index, int value, int site) {
        if (array instanceof boolean[] booleans) {
            boolean old = booleans[index];
            ThreadLog log = element(array, index, site);
            booleans[index] = (value & 1) != 0;
            log.wrote((value & 1) != 0);
            return;
        }
        byte[] bytes = (byte[]) array;
        byte old = bytes[index];
        ThreadLog log = element(array, index, site);
        bytes[index] = (byte) value;
        log.wrote((int) (byte) value);
    }

    public static void aastore(Object[] array, int index, Object value, int site) {
        Object old = array[index];
        if (value != null && !array.getClass().getComponentType().isInstance(value)) {
            array[index] = value;
        }
        Local.storing(array, value);
        ThreadLog log = element(array, index, site);
        array[index] = value;
        log.wrote(value);
    }

    /** A store that is not recorded. */
    public static void store(Object[] array, int index, Object value) {
        Local.storing(array, value);
        array[index] = value;
    }

    // Monitors.

    public static void request(Object monitor, int site) {
        if (Log.isOn && monitor != null) {
            ThreadLog log = ThreadLog.current();
            log.tell(Op.REQUEST, 0, site, Ids.of(monitor, log), 0);
        }
    }

    public static void entered(Object monitor, int site) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            log.note(Op.ACQUIRE, site, Ids.of(monitor, log), 0);
        }
    }

    public static void leaving(Object monitor, int site) {
        if (Log.isOn && monitor != null) {
            ThreadLog log = ThreadLog.current();
            log.note(Op.RELEASE, site, Ids.of(monitor, log), 0);
        }
    }

    public static void enteredMethod(Object monitor, int site) {
        ThreadLog.current().push(monitor);
        entered(monitor, site);
    }

    public static void leavingMethod(int site) {
        leaving(ThreadLog.current().pop(), site);
    }

    public static void waitFor(Object monitor, long millis, int nanos, int site) throws InterruptedException {
        boolean isHeld = Log.isOn && Thread.holdsLock(monitor);
        if (isHeld) {
            ThreadLog log = ThreadLog.current();
            long id = Ids.of(monitor, log);
            log.note(Op.WAIT_BEGIN, site, id, id);
        }
        try {
            monitor.wait(millis, nanos);
        } catch (InterruptedException e) {
            // The lock is held again before anything else is done.
            if (isHeld) {
                waited(monitor, site);
                isHeld = false;
            }
            Threads.threw(e, site);
            throw e;
        } finally {
            if (isHeld) {
                waited(monitor, site);
            }
        }
    }

    private static void waited(Object monitor, int site) {
        ThreadLog log = ThreadLog.current();
        long id = Ids.of(monitor, log);
        log.note(Op.WAIT_END, site, id, id);
    }

    public static void waitFor(Object monitor, long millis, int site) throws InterruptedException {
        waitFor(monitor, millis, 0, site);
    }

    public static void waitFor(Object monitor, int site) throws InterruptedException {
        waitFor(monitor, 0, 0, site);
    }

    public static void notifyOne(Object monitor, int site) {
        if (Log.isOn && Thread.holdsLock(monitor)) {
            ThreadLog log = ThreadLog.current();
            log.note(Op.NOTIFY, site, Ids.of(monitor, log), 0);
        }
        monitor.notify();
    }

    public static void notifyEvery(Object monitor, int site) {
        if (Log.isOn && Thread.holdsLock(monitor)) {
            ThreadLog log = ThreadLog.current();
            log.note(Op.NOTIFY_ALL, site, Ids.of(monitor, log), 0);
        }
        monitor.notifyAll();
    }

    // Classes.

    /** At the beginning of a static initialiser. */
    public static void initialising(int type, int site) {
        if (Log.isOn) {
            ThreadLog.current().note(Op.INITIALISING, site, -2L - type, 0);
        }
    }

    /** At the end of a static initialiser. */
    public static void initialised(int type, int site) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            log.isFirstUse(type);
            log.note(Op.INITIALISED, site, -2L - type, 0);
        }
    }

    /** Before the first use of a class by a thread, which waits for the class's initialisation. */
    public static void uses(int type) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            if (log.isFirstUse(type)) {
                log.note(Op.INITIALISATION_SEEN, 0, -2L - type, 0);
            }
        }
    }

    // Methods that specifications name.

    public static void argument(Object value) {
        if (Log.isOn) {
            ThreadLog log = ThreadLog.current();
            int type = Values.type(value);
            log.tell(Op.ARGUMENT, type, 0, 0, Values.bits(value, type, log));
        }
    }

    public static void call(int method, int site) {
        if (Log.isOn) {
            ThreadLog.current().note(Op.CALL, Stripes.WATCHED, site, method, 0);
        }
    }

    public static void returned(int method, int site) {
        if (Log.isOn) {
            ThreadLog.current().note(Op.RETURN, Stripes.WATCHED, site, method, 0);
        }
    }

    /** After an operation of an atomic object that changes it, or tried to. */
    public static void changed(ThreadLog log, boolean isChanged, Object old, Object value) {
        if (isChanged) {
            log.changed(old, value);
        } else {
            log.read(old);
        }
    }
}
