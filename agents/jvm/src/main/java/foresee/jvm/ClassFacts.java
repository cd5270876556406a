package foresee.jvm;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.FieldVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/** What must be known about a class before its code is read. */
final class ClassFacts extends ClassVisitor {
    record Field(String name, String type, int access) {}

    final List<Field> fields = new ArrayList<>();
    final Set<String> finals = new HashSet<>();
    String name;
    String superName;
    String source;
    boolean isInterface;
    boolean hasInitialiser;
    int version;

    ClassFacts() {
        super(Opcodes.ASM9);
    }

    @Override
    public void visit(int version, int access, String name, String signature, String superName, String[] interfaces) {
        this.version = version & 0xffff;
        this.name = name;
        this.superName = superName;
        isInterface = (access & Opcodes.ACC_INTERFACE) != 0;
    }

    @Override
    public FieldVisitor visitField(int access, String name, String type, String signature, Object value) {
        fields.add(new Field(name, type, access));
        if ((access & Opcodes.ACC_FINAL) != 0) {
            finals.add(name + ":" + type);
        }
        return null;
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] exceptions) {
        hasInitialiser |= name.equals("<clinit>");
        return null;
    }
}
