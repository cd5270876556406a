package foresee.jvm;

import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/** Code of class files from before Java 6, which have no frames, and before Java 5 no constants that are classes. */
final class OldCode extends MethodVisitor {
    private final boolean hasClassConstants;

    private OldCode(MethodVisitor next, int version) {
        super(Opcodes.ASM9, next);
        hasClassConstants = version >= Opcodes.V1_5;
    }

    /** What writes code for this version of class files. */
    static MethodVisitor of(MethodVisitor next, int version) {
        return next == null || version >= Opcodes.V1_6 ? next : new OldCode(next, version);
    }

    @Override
    public void visitFrame(int type, int localCount, Object[] locals, int stackCount, Object[] stack) {
        // The verifier of old classes finds them itself.
    }

    @Override
    public void visitLdcInsn(Object constant) {
        if (constant instanceof Type type && !hasClassConstants) {
            super.visitLdcInsn(type.getClassName());
            super.visitMethodInsn(Opcodes.INVOKESTATIC, "java/lang/Class", "forName", "(Ljava/lang/String;)Ljava/lang/Class;", false);
        } else {
            super.visitLdcInsn(constant);
        }
    }
}
