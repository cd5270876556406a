package foresee.jvm;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** Helpers for calls of variable handles and field updaters. */
final class HandleCalls {
    private static final String OBJECT = "Ljava/lang/Object;";
    private static final String HANDLES = "foresee/jvm/Handles";
    private static final String HANDLE = "java/lang/invoke/VarHandle";
    private static final String LOOKUP = "java/lang/invoke/MethodHandles$Lookup";

    private HandleCalls() {}

    private static boolean isUpdater(String owner) {
        return owner.startsWith("java/util/concurrent/atomic/Atomic") && owner.endsWith("FieldUpdater");
    }

    static boolean isMeant(String owner) {
        return owner.equals(HANDLE) || owner.equals(LOOKUP) || isUpdater(owner);
    }

    static Helpers.Redirect of(Helpers.Call call) {
        if (call.owner().equals(LOOKUP)) {
            return call.name().equals("findVarHandle") || call.name().equals("findStaticVarHandle") ? made(call) : null;
        }
        if (call.isStatic()) {
            // The others are fences, and all accesses are taken to be in one order anyway.
            return call.name().equals("newUpdater") ? made(call) : null;
        }
        String name = call.name();
        return switch (name) {
            case "get", "getPlain", "getVolatile", "getOpaque", "getAcquire" -> access(call, Handles.READ, 0);
            case "set", "setPlain", "setVolatile", "setOpaque", "setRelease", "lazySet" -> access(call, Handles.WRITE, 1);
            case "compareAndSet" -> access(call, Handles.TRY, 2);
            case "getAndIncrement", "getAndDecrement", "incrementAndGet", "decrementAndGet" -> access(call, Handles.CHANGE, 0);
            case "addAndGet", "getAndAdd", "getAndSet" -> access(call, Handles.CHANGE, 1);
            case "getAndUpdate", "updateAndGet", "getAndAccumulate", "accumulateAndGet", "toMethodHandle" -> call.unfollowed();
            default -> {
                if (name.startsWith("weakCompareAndSet")) {
                    yield access(call, Handles.TRY, 2);
                }
                if (name.startsWith("compareAndExchange")) {
                    yield access(call, Handles.CHANGE, 2);
                }
                yield name.startsWith("getAndSet") || name.startsWith("getAndAdd") || name.startsWith("getAndBitwise") ? access(call, Handles.CHANGE, 1) : null;
            }
        };
    }

    /** A handle is made for the field that the arguments name. */
    private static Helpers.Redirect made(Helpers.Call call) {
        return new Helpers.Redirect(call.key("made"), call.helperType(), code -> {
            call.invoke(code);
            code.visitInsn(Opcodes.DUP);
            int first = call.isStatic() ? 0 : 1;
            boolean isReference = call.owner().endsWith("ReferenceFieldUpdater");
            code.visitVarInsn(Opcodes.ALOAD, first);
            code.visitVarInsn(Opcodes.ALOAD, first + (isReference ? 2 : 1));
            String arguments = OBJECT + "Ljava/lang/Class;Ljava/lang/String;";
            if (isReference || !call.isStatic()) {
                code.visitVarInsn(Opcodes.ALOAD, first + (isReference ? 1 : 2));
                arguments += "Ljava/lang/Class;";
            }
            code.visitMethodInsn(Opcodes.INVOKESTATIC, HANDLES, "made", "(" + arguments + ")V", false);
            code.visitInsn(Opcodes.ARETURN);
        });
    }

    /** An access; the last arguments are values, those before say where. */
    private static Helpers.Redirect access(Helpers.Call call, int kind, int values) {
        Type[] arguments = Type.getArgumentTypes(call.type());
        int coordinates = arguments.length - values;
        boolean isKnown = coordinates >= 0 && coordinates <= 2 && (coordinates < 1 || arguments[0].getSort() >= Type.ARRAY)
                && (coordinates < 2 || arguments[1].getSort() >= Type.CHAR && arguments[1].getSort() <= Type.INT);
        if (!isKnown) {
            return call.unfollowed();
        }
        boolean isPlain = call.owner().equals(HANDLE) && (call.name().equals("get") || call.name().equals("set"));
        return new Helpers.Redirect(call.key("handle"), call.helperType(), code -> call.guarded(code, () -> {
            where(code, coordinates);
            ClassRewriter.push(code, isPlain ? 1 : 0);
            code.visitVarInsn(Opcodes.ILOAD, call.site());
            code.visitMethodInsn(Opcodes.INVOKESTATIC, HANDLES, "begin", "(" + OBJECT + OBJECT + "IZI)V", false);
        }, () -> {
            // A compare-and-set whose result is not used returns nothing; whether it was a change shows in the value.
            boolean isAnswered = kind == Handles.TRY && Type.getReturnType(call.type()).getSort() == Type.BOOLEAN;
            if (isAnswered) {
                code.visitInsn(Opcodes.DUP);
                where(code, coordinates);
            } else {
                where(code, coordinates);
                ClassRewriter.push(code, kind == Handles.TRY ? Handles.CHANGE : kind);
            }
            code.visitVarInsn(Opcodes.ILOAD, call.site());
            code.visitMethodInsn(Opcodes.INVOKESTATIC, HANDLES, isAnswered ? "tried" : "end",
                    isAnswered ? "(Z" + OBJECT + OBJECT + "II)V" : "(" + OBJECT + OBJECT + "III)V", false);
        }, () -> {
            where(code, coordinates);
            code.visitMethodInsn(Opcodes.INVOKESTATIC, HANDLES, "failed", "(Ljava/lang/Throwable;I" + OBJECT + OBJECT + "I)V", false);
        }));
    }

    /** The handle, the object or array, and the index. */
    private static void where(MethodVisitor code, int coordinates) {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        if (coordinates == 0) {
            code.visitInsn(Opcodes.ACONST_NULL);
        } else {
            code.visitVarInsn(Opcodes.ALOAD, 1);
        }
        if (coordinates < 2) {
            code.visitInsn(Opcodes.ICONST_0);
        } else {
            code.visitVarInsn(Opcodes.ILOAD, 2);
        }
    }
}
