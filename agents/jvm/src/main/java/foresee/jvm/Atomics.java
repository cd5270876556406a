package foresee.jvm;

import java.util.Map;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** Helpers for the operations of {@code AtomicInteger} and its relatives, each of which is one step. */
final class Atomics {
    private static final String PACKAGE = "java/util/concurrent/atomic/";

    /** What the classes hold. */
    private static final Map<String, String> HELD = Map.of("AtomicInteger", "I", "AtomicLong", "J", "AtomicBoolean", "Z", "AtomicReference",
            "Ljava/lang/Object;", "AtomicIntegerArray", "I", "AtomicLongArray", "J", "AtomicReferenceArray", "Ljava/lang/Object;");

    private Atomics() {}

    static boolean isMeant(String owner) {
        return owner.startsWith(PACKAGE) && HELD.containsKey(owner.substring(PACKAGE.length()));
    }

    static Helpers.Redirect of(Helpers.Call call) {
        String type = call.origin().substring(PACKAGE.length());
        boolean isArray = type.endsWith("Array");
        return switch (call.name()) {
            case "get", "getPlain", "getOpaque", "getAcquire" -> helper(call, type, isArray, Kind.READ);
            case "set", "lazySet", "setPlain", "setOpaque", "setRelease" -> helper(call, type, isArray, Kind.WRITE);
            case "getAndSet", "getAndIncrement", "getAndDecrement", "getAndAdd", "incrementAndGet", "decrementAndGet", "addAndGet",
                 "compareAndExchange", "compareAndExchangeAcquire", "compareAndExchangeRelease" ->
                helper(call, type, isArray, Kind.CHANGE);
            case "compareAndSet", "weakCompareAndSet", "weakCompareAndSetPlain", "weakCompareAndSetAcquire", "weakCompareAndSetRelease",
                 "weakCompareAndSetVolatile" ->
                helper(call, type, isArray, Kind.TRY);
            case "getAndUpdate", "updateAndGet", "getAndAccumulate", "accumulateAndGet" ->
                isArray ? call.unfollowed() : call.to("foresee/jvm/AtomicLoops", call.name(), "L" + call.origin() + ";");
            case "intValue", "longValue", "floatValue", "doubleValue", "toString" ->
                isArray ? call.unfollowed() : call.to("foresee/jvm/AtomicLoops", call.name(), "L" + call.origin() + ";");
            default -> null;
        };
    }

    private enum Kind { READ, WRITE, CHANGE, TRY }

    private static Helpers.Redirect helper(Helpers.Call call, String type, boolean isArray, Kind kind) {
        return new Helpers.Redirect(call.key("atomic"), call.helperType(), code -> write(code, call, HELD.get(type), isArray, kind));
    }

    /** The object's current value, first outside the step to be sure that it can be had. */
    private static void get(MethodVisitor code, Helpers.Call call, String held, boolean isArray) {
        code.visitVarInsn(Opcodes.ALOAD, 0);
        if (isArray) {
            code.visitVarInsn(Opcodes.ILOAD, 1);
        }
        code.visitMethodInsn(Opcodes.INVOKEVIRTUAL, call.owner(), "get", (isArray ? "(I)" : "()") + held, false);
    }

    private static void write(MethodVisitor code, Helpers.Call call, String held, boolean isArray, Kind kind) {
        Type value = Type.getType(held);
        Type result = Type.getReturnType(call.type());
        int site = call.site();
        int log = site + 1;
        int old = log + 1;
        int got = old + value.getSize();
        get(code, call, held, isArray);
        code.visitInsn(value.getSize() == 2 ? Opcodes.POP2 : Opcodes.POP);
        code.visitVarInsn(Opcodes.ALOAD, 0);
        if (isArray) {
            code.visitVarInsn(Opcodes.ILOAD, 1);
        } else {
            code.visitInsn(Opcodes.ICONST_0);
        }
        code.visitVarInsn(Opcodes.ILOAD, site);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.RT, "begin", "(Ljava/lang/Object;II)L" + CodeRewriter.LOG + ";", false);
        code.visitVarInsn(Opcodes.ASTORE, log);
        get(code, call, held, isArray);
        code.visitVarInsn(value.getOpcode(Opcodes.ISTORE), old);
        call.invoke(code);
        if (result.getSort() != Type.VOID) {
            code.visitVarInsn(result.getOpcode(Opcodes.ISTORE), got);
        }
        code.visitVarInsn(Opcodes.ALOAD, log);
        String logged = ClassRewriter.logged(held);
        switch (kind) {
            case READ -> {
                code.visitVarInsn(value.getOpcode(Opcodes.ILOAD), old);
                code.visitMethodInsn(Opcodes.INVOKEVIRTUAL, CodeRewriter.LOG, "read", "(" + logged + ")V", false);
            }
            case WRITE -> {
                get(code, call, held, isArray);
                code.visitMethodInsn(Opcodes.INVOKEVIRTUAL, CodeRewriter.LOG, "wrote", "(" + logged + ")V", false);
            }
            default -> {
                if (kind == Kind.TRY) {
                    code.visitVarInsn(Opcodes.ILOAD, got);
                } else {
                    code.visitInsn(Opcodes.ICONST_1);
                }
                code.visitVarInsn(value.getOpcode(Opcodes.ILOAD), old);
                ClassRewriter.box(code, value);
                get(code, call, held, isArray);
                ClassRewriter.box(code, value);
                code.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.RT, "changed",
                        "(L" + CodeRewriter.LOG + ";ZLjava/lang/Object;Ljava/lang/Object;)V", false);
            }
        }
        if (result.getSort() != Type.VOID) {
            code.visitVarInsn(result.getOpcode(Opcodes.ILOAD), got);
        }
        code.visitInsn(result.getOpcode(Opcodes.IRETURN));
    }
}
