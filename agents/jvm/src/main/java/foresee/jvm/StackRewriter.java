package foresee.jvm;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.objectweb.asm.Handle;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Adds to a method what keeps the call stack of its thread: it says when it is entered and left, and before each call, where that
 * is. The thread's log and the depth of the method are in two more local variables, so that leaving sets the depth to what it was,
 * whatever happened in between.
 */
final class StackRewriter extends MethodVisitor {
    /** How many local variables it adds. */
    static final int LOCALS = 2;

    private final ClassRewriter type;
    private final String name;
    private final boolean isConstructor;
    /** The local variables of the log and of the depth come after all others. */
    private final int locals;
    private final Label start = new Label();
    private final Set<Label> handlers = new HashSet<>();
    private boolean isHandler;
    /** The labels since the last object was made. */
    private final List<Label> recent = new ArrayList<>();
    /** Frames name an object that is not constructed by the label where it is made; these have got another one, which is after the code that was added. */
    private final Map<Label, Label> moved = new HashMap<>();
    /** The labels in frames that come before the code. */
    private final Set<Object> early = new HashSet<>();
    private int line;
    /** The last place of a call, and its line. */
    private int site;
    private int siteLine = -1;

    StackRewriter(MethodVisitor next, ClassRewriter type, String name, int locals) {
        super(Opcodes.ASM9, next);
        this.type = type;
        this.name = name;
        this.locals = locals;
        isConstructor = name.equals("<init>");
    }

    private int site() {
        if (siteLine != line) {
            site = type.site(null, null, name, line);
            siteLine = line;
        }
        return site;
    }

    @Override
    public void visitCode() {
        super.visitCode();
        // What the JVM calls by itself is called from somewhere in the method.
        ClassRewriter.push(mv, site());
        super.visitMethodInsn(Opcodes.INVOKESTATIC, CodeRewriter.LOG, "entered", "(I)L" + CodeRewriter.LOG + ";", false);
        super.visitInsn(Opcodes.DUP);
        super.visitVarInsn(Opcodes.ASTORE, locals);
        super.visitFieldInsn(Opcodes.GETFIELD, CodeRewriter.LOG, "depth", "I");
        super.visitVarInsn(Opcodes.ISTORE, locals + 1);
        super.visitLabel(start);
    }

    private void tell(String what) {
        super.visitVarInsn(Opcodes.ALOAD, locals);
        super.visitVarInsn(Opcodes.ILOAD, locals + 1);
        super.visitMethodInsn(Opcodes.INVOKEVIRTUAL, CodeRewriter.LOG, what, "(I)V", false);
    }

    /** Before something that may call a method of the program. */
    void calling() {
        super.visitVarInsn(Opcodes.ALOAD, locals);
        super.visitVarInsn(Opcodes.ILOAD, locals + 1);
        ClassRewriter.push(mv, site());
        super.visitMethodInsn(Opcodes.INVOKEVIRTUAL, CodeRewriter.LOG, "calling", "(II)V", false);
    }

    @Override
    public void visitMethodInsn(int opcode, String owner, String method, String descriptor, boolean isInterface) {
        // The code that the agent adds says itself what it does.
        boolean isAdded = owner.startsWith("foresee/jvm/") || method.startsWith("$fs$");
        if (!isAdded && !callsNothing(owner, method)) {
            calling();
        }
        super.visitMethodInsn(opcode, owner, method, descriptor, isInterface);
    }

    /** Whether a method of the JDK is known not to call the program. */
    private static boolean callsNothing(String owner, String method) {
        return switch (owner) {
            case "java/lang/Object" -> method.equals("<init>") || method.equals("getClass");
            case "java/lang/Math", "java/lang/Integer", "java/lang/Long", "java/lang/Short", "java/lang/Byte", "java/lang/Character", "java/lang/Boolean",
                    "java/lang/Double", "java/lang/Float" -> true;
            default -> false;
        };
    }

    @Override
    public void visitInvokeDynamicInsn(String method, String descriptor, Handle bootstrap, Object... arguments) {
        // Concatenation asks objects for their texts.
        calling();
        super.visitInvokeDynamicInsn(method, descriptor, bootstrap, arguments);
    }

    @Override
    public void visitTypeInsn(int opcode, String made) {
        if (opcode == Opcodes.NEW) {
            // It may initialise the class.
            if (!Transformer.isJdk(made) && !made.equals(type.facts.name) && Collections.disjoint(recent, early)) {
                calling();
                Label later = new Label();
                super.visitLabel(later);
                recent.forEach(label -> moved.put(label, later));
            }
            recent.clear();
        }
        super.visitTypeInsn(opcode, made);
    }

    @Override
    public void visitInsn(int opcode) {
        if (opcode >= Opcodes.IRETURN && opcode <= Opcodes.RETURN) {
            tell("left");
        }
        super.visitInsn(opcode);
    }

    @Override
    public void visitLineNumber(int line, Label start) {
        this.line = line;
        super.visitLineNumber(line, start);
    }

    @Override
    public void visitTryCatchBlock(Label start, Label end, Label handler, String type) {
        handlers.add(handler);
        super.visitTryCatchBlock(start, end, handler, type);
    }

    @Override
    public void visitLabel(Label label) {
        super.visitLabel(label);
        recent.add(label);
        if (handlers.contains(label)) {
            isHandler = true;
            if (type.facts.version < Opcodes.V1_6) {
                caught();
            }
        }
    }

    @Override
    public void visitFrame(int kind, int localCount, Object[] known, int stackCount, Object[] stack) {
        Object[] all = new Object[locals + 2];
        int count = 0;
        int size = 0;
        for (int i = 0; i < localCount; i++) {
            all[count++] = relabelled(known[i]);
            size += known[i] == Opcodes.LONG || known[i] == Opcodes.DOUBLE ? 2 : 1;
        }
        for (; size < locals; size++) {
            all[count++] = Opcodes.TOP;
        }
        all[count++] = CodeRewriter.LOG;
        all[count++] = Opcodes.INTEGER;
        Object[] operands = new Object[stackCount];
        for (int i = 0; i < stackCount; i++) {
            operands[i] = relabelled(stack[i]);
        }
        super.visitFrame(Opcodes.F_NEW, count, all, stackCount, operands);
        if (isHandler) {
            caught();
        }
    }

    private Object relabelled(Object type) {
        if (type instanceof Label && !moved.containsKey(type)) {
            early.add(type);
        }
        return type instanceof Label ? moved.getOrDefault(type, (Label) type) : type;
    }

    /** An exception may have passed a constructor, which cannot catch what its superclass throws. */
    private void caught() {
        isHandler = false;
        tell("caught");
    }

    @Override
    public void visitMaxs(int stack, int maxLocals) {
        if (!isConstructor) {
            Label end = new Label();
            super.visitLabel(end);
            super.visitTryCatchBlock(start, end, end, null);
            visitFrame(Opcodes.F_NEW, 0, null, 1, new Object[] {"java/lang/Throwable"});
            tell("left");
            super.visitInsn(Opcodes.ATHROW);
        }
        super.visitMaxs(stack, maxLocals);
    }
}
