package foresee.jvm;

import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/**
 * Accesses of fields of objects. There is one method for each type of field, which finds the field by the site: the JVM compiles it
 * once, and not once for each field.
 */
public final class Accesses {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final String NAME = "foresee/jvm/Accesses";
    private static final String OBJECT = "Ljava/lang/Object;";

    private Accesses() {}

    /** Writes the call for an access; the object, the value and the site are on the stack. */
    static void call(MethodVisitor code, boolean isWrite, String type) {
        boolean isObject = type.length() > 1;
        String name = switch (type.charAt(0)) {
            case 'Z' -> "Boolean";
            case 'B' -> "Byte";
            case 'C' -> "Char";
            case 'S' -> "Short";
            case 'I' -> "Int";
            case 'J' -> "Long";
            case 'F' -> "Float";
            case 'D' -> "Double";
            default -> "Reference";
        };
        String value = isObject ? OBJECT : type;
        code.visitMethodInsn(Opcodes.INVOKESTATIC, NAME, (isWrite ? "put" : "get") + name, isWrite ? "(" + OBJECT + value + "I)V" : "(" + OBJECT + "I)" + value, false);
        if (!isWrite && isObject && !type.equals(OBJECT)) {
            code.visitTypeInsn(Opcodes.CHECKCAST, Type.getType(type).getInternalName());
        }
    }

    /** Where the object has the field; fails if there is no object. */
    @ForceInline
    private static long offset(Object object, Sites.Site place) {
        long offset = place.offset;
        return offset != 0 && object != null ? offset : place.offset(object);
    }

    /** Before an access that may have to be recorded, of an object that has the field. */
    @ForceInline
    private static ThreadLog begin(Object object, Sites.Site place) {
        int key = place.key;
        if (key == Sites.FINAL || !Log.isOn) {
            return ThreadLog.IDLE;
        }
        ThreadLog log = ThreadLog.current();
        long id = Ids.of(object, place.tag, log);
        int stripe = place.isWatched ? Stripes.WATCHED : Stripes.of(id, key);
        return log.begin(stripe, id, 0, place.number, place.isVolatile) ? log : ThreadLog.IDLE;
    }

    @DontInline
    public static boolean getBoolean(Object object, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            return U.getBoolean(object, offset);
        }
        ThreadLog log = begin(object, place);
        boolean value = place.isVolatile ? U.getBooleanVolatile(object, offset) : U.getBoolean(object, offset);
        log.read(value);
        return value;
    }

    @DontInline
    public static void putBoolean(Object object, boolean value, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            U.putBoolean(object, offset, value);
            return;
        }
        ThreadLog log = begin(object, place);
        if (place.isVolatile) {
            U.putBooleanVolatile(object, offset, value);
        } else {
            U.putBoolean(object, offset, value);
        }
        log.wrote(value);
    }

    @DontInline
    public static byte getByte(Object object, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            return U.getByte(object, offset);
        }
        ThreadLog log = begin(object, place);
        byte value = place.isVolatile ? U.getByteVolatile(object, offset) : U.getByte(object, offset);
        log.read((int) value);
        return value;
    }

    @DontInline
    public static void putByte(Object object, byte value, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            U.putByte(object, offset, value);
            return;
        }
        ThreadLog log = begin(object, place);
        if (place.isVolatile) {
            U.putByteVolatile(object, offset, value);
        } else {
            U.putByte(object, offset, value);
        }
        log.wrote((int) value);
    }

    @DontInline
    public static char getChar(Object object, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            return U.getChar(object, offset);
        }
        ThreadLog log = begin(object, place);
        char value = place.isVolatile ? U.getCharVolatile(object, offset) : U.getChar(object, offset);
        log.read((int) value);
        return value;
    }

    @DontInline
    public static void putChar(Object object, char value, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            U.putChar(object, offset, value);
            return;
        }
        ThreadLog log = begin(object, place);
        if (place.isVolatile) {
            U.putCharVolatile(object, offset, value);
        } else {
            U.putChar(object, offset, value);
        }
        log.wrote((int) value);
    }

    @DontInline
    public static short getShort(Object object, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            return U.getShort(object, offset);
        }
        ThreadLog log = begin(object, place);
        short value = place.isVolatile ? U.getShortVolatile(object, offset) : U.getShort(object, offset);
        log.read((int) value);
        return value;
    }

    @DontInline
    public static void putShort(Object object, short value, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            U.putShort(object, offset, value);
            return;
        }
        ThreadLog log = begin(object, place);
        if (place.isVolatile) {
            U.putShortVolatile(object, offset, value);
        } else {
            U.putShort(object, offset, value);
        }
        log.wrote((int) value);
    }

    @DontInline
    public static int getInt(Object object, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            return U.getInt(object, offset);
        }
        ThreadLog log = begin(object, place);
        int value = place.isVolatile ? U.getIntVolatile(object, offset) : U.getInt(object, offset);
        log.read(value);
        return value;
    }

    @DontInline
    public static void putInt(Object object, int value, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            U.putInt(object, offset, value);
            return;
        }
        ThreadLog log = begin(object, place);
        if (place.isVolatile) {
            U.putIntVolatile(object, offset, value);
        } else {
            U.putInt(object, offset, value);
        }
        log.wrote(value);
    }

    @DontInline
    public static long getLong(Object object, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            return U.getLong(object, offset);
        }
        ThreadLog log = begin(object, place);
        long value = place.isVolatile ? U.getLongVolatile(object, offset) : U.getLong(object, offset);
        log.read(value);
        return value;
    }

    @DontInline
    public static void putLong(Object object, long value, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            U.putLong(object, offset, value);
            return;
        }
        ThreadLog log = begin(object, place);
        if (place.isVolatile) {
            U.putLongVolatile(object, offset, value);
        } else {
            U.putLong(object, offset, value);
        }
        log.wrote(value);
    }

    @DontInline
    public static float getFloat(Object object, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            return U.getFloat(object, offset);
        }
        ThreadLog log = begin(object, place);
        float value = place.isVolatile ? U.getFloatVolatile(object, offset) : U.getFloat(object, offset);
        log.read(value);
        return value;
    }

    @DontInline
    public static void putFloat(Object object, float value, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            U.putFloat(object, offset, value);
            return;
        }
        ThreadLog log = begin(object, place);
        if (place.isVolatile) {
            U.putFloatVolatile(object, offset, value);
        } else {
            U.putFloat(object, offset, value);
        }
        log.wrote(value);
    }

    @DontInline
    public static double getDouble(Object object, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            return U.getDouble(object, offset);
        }
        ThreadLog log = begin(object, place);
        double value = place.isVolatile ? U.getDoubleVolatile(object, offset) : U.getDouble(object, offset);
        log.read(value);
        return value;
    }

    @DontInline
    public static void putDouble(Object object, double value, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            U.putDouble(object, offset, value);
            return;
        }
        ThreadLog log = begin(object, place);
        if (place.isVolatile) {
            U.putDoubleVolatile(object, offset, value);
        } else {
            U.putDouble(object, offset, value);
        }
        log.wrote(value);
    }

    @DontInline
    public static Object getReference(Object object, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            return U.getReference(object, offset);
        }
        ThreadLog log = begin(object, place);
        Object value = place.isVolatile ? U.getReferenceVolatile(object, offset) : U.getReference(object, offset);
        log.read(value);
        return value;
    }

    @DontInline
    public static void putReference(Object object, Object value, int site) {
        Sites.Site place = Sites.get(site);
        long offset = offset(object, place);
        if (Local.isOwn(object, place.state)) {
            U.putReference(object, offset, value);
            return;
        }
        if (!Local.isOwn(object, place.tag)) {
            Local.share(value);
        }
        ThreadLog log = begin(object, place);
        if (place.isVolatile) {
            U.putReferenceVolatile(object, offset, value);
        } else {
            U.putReference(object, offset, value);
        }
        log.wrote(value);
    }
}
