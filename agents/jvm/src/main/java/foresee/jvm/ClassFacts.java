package foresee.jvm;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.objectweb.asm.ClassReader;
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
    String[] interfaces = {};
    /** The number of local variables of each method, in their order; 0 of those without code. */
    int[] locals = {};
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
        this.interfaces = interfaces;
        isInterface = (access & Opcodes.ACC_INTERFACE) != 0;
    }

    /** Whether objects of the class get a field for the agent. */
    boolean hasState() {
        return !isInterface && "java/lang/Object".equals(superName);
    }

    /** Finds the numbers of local variables without reading any code. */
    void readLocals(ClassReader reader) {
        int at = reader.header + 8 + 2 * reader.readUnsignedShort(reader.header + 6);
        char[] text = new char[reader.getMaxStringLength()];
        int fields = reader.readUnsignedShort(at);
        at += 2;
        for (int i = 0; i < fields; i++) {
            at = afterMember(reader, at);
        }
        locals = new int[reader.readUnsignedShort(at)];
        at += 2;
        for (int i = 0; i < locals.length; i++) {
            int attribute = at + 8;
            for (int left = reader.readUnsignedShort(at + 6); left > 0; left--) {
                if ("Code".equals(reader.readUTF8(attribute, text))) {
                    locals[i] = reader.readUnsignedShort(attribute + 8);
                }
                attribute += 6 + reader.readInt(attribute + 2);
            }
            at = attribute;
        }
    }

    private static int afterMember(ClassReader reader, int member) {
        int at = member + 8;
        for (int left = reader.readUnsignedShort(member + 6); left > 0; left--) {
            at += 6 + reader.readInt(at + 2);
        }
        return at;
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
