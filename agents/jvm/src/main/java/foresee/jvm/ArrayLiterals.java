package foresee.jvm;

import org.objectweb.asm.Handle;
import org.objectweb.asm.Label;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Leaves the stores of array literals alone: {@code int[] primes = {2, 3, 5}} stores constants at constant places of an array that
 * no other thread can see yet. Recording them is useless, and makes initialisers of large tables too large for a class
 * file.
 */
final class ArrayLiterals extends MethodVisitor {
    private final CodeRewriter code;
    /** How far the instructions go on as those of a literal do: 0 is not at all, 1 an array, 2 a second reference to it, 3 an index, 4 a value. */
    private int steps;

    ArrayLiterals(CodeRewriter code) {
        super(Opcodes.ASM9, code);
        this.code = code;
    }

    private void constant() {
        steps = steps == 2 || steps == 3 ? steps + 1 : 0;
    }

    @Override
    public void visitInsn(int opcode) {
        boolean isStore = opcode >= Opcodes.IASTORE && opcode <= Opcodes.SASTORE;
        if (isStore && steps == 4) {
            steps = 1;
            code.plain(opcode);
            return;
        }
        if (opcode >= Opcodes.ACONST_NULL && opcode <= Opcodes.DCONST_1) {
            constant();
        } else {
            steps = opcode == Opcodes.DUP && steps == 1 ? 2 : 0;
        }
        super.visitInsn(opcode);
    }

    @Override
    public void visitIntInsn(int opcode, int operand) {
        if (opcode == Opcodes.NEWARRAY) {
            steps = 1;
        } else {
            constant();
        }
        super.visitIntInsn(opcode, operand);
    }

    @Override
    public void visitTypeInsn(int opcode, String type) {
        steps = opcode == Opcodes.ANEWARRAY ? 1 : 0;
        super.visitTypeInsn(opcode, type);
    }

    @Override
    public void visitLdcInsn(Object value) {
        // Some constants are computed when they are first used, by code of the program.
        if (value instanceof Number || value instanceof String) {
            constant();
        } else {
            steps = 0;
        }
        super.visitLdcInsn(value);
    }

    @Override
    public void visitVarInsn(int opcode, int local) {
        steps = 0;
        super.visitVarInsn(opcode, local);
    }

    @Override
    public void visitFieldInsn(int opcode, String owner, String name, String descriptor) {
        steps = 0;
        super.visitFieldInsn(opcode, owner, name, descriptor);
    }

    @Override
    public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
        steps = 0;
        super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
    }

    @Override
    public void visitInvokeDynamicInsn(String name, String descriptor, Handle bootstrap, Object... arguments) {
        steps = 0;
        super.visitInvokeDynamicInsn(name, descriptor, bootstrap, arguments);
    }

    @Override
    public void visitJumpInsn(int opcode, Label label) {
        steps = 0;
        super.visitJumpInsn(opcode, label);
    }

    @Override
    public void visitFrame(int type, int localCount, Object[] locals, int stackCount, Object[] stack) {
        // A jump may lead here. Labels without a frame are for line numbers.
        steps = 0;
        super.visitFrame(type, localCount, locals, stackCount, stack);
    }

    @Override
    public void visitIincInsn(int local, int increment) {
        steps = 0;
        super.visitIincInsn(local, increment);
    }

    @Override
    public void visitTableSwitchInsn(int min, int max, Label other, Label... labels) {
        steps = 0;
        super.visitTableSwitchInsn(min, max, other, labels);
    }

    @Override
    public void visitLookupSwitchInsn(Label other, int[] keys, Label[] labels) {
        steps = 0;
        super.visitLookupSwitchInsn(other, keys, labels);
    }

    @Override
    public void visitMultiANewArrayInsn(String descriptor, int dimensions) {
        steps = 0;
        super.visitMultiANewArrayInsn(descriptor, dimensions);
    }
}
