package foresee.jvm;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/**
 * Rewrites one class. Each access and each call that matters is replaced by a call of a private helper in the same class, which
 * does it and records it; so the code around it stays as it is, with its frames.
 */
final class ClassRewriter extends ClassVisitor {
    private static final AtomicInteger types = new AtomicInteger();

    final ClassFacts facts;
    final ClassLoader loader;
    final Transformer.Watch watch;
    /** Whether only what orders threads is recorded, and what specifications name. */
    final boolean isLeftOut;
    /** The number under which the initialisation of this class is recorded, or 0. */
    final int type;
    /** The class's name as programmers write it. */
    final String title;
    /** Whether call stacks are recorded. */
    private final boolean hasStacks;
    /** How many methods there have been. */
    private int methods;
    final StringBuilder lines = new StringBuilder();
    private String source;
    private final Map<String, Helper> helpers = new LinkedHashMap<>();

    /** A helper that is written at the end of the class. */
    private record Helper(String name, String type, Body body) {}

    /** Writes the code of a helper. */
    interface Body {
        void write(MethodVisitor code);
    }

    ClassRewriter(ClassVisitor next, ClassLoader loader, ClassFacts facts, Transformer.Watch watch, Filter filter, boolean hasStacks) {
        super(Opcodes.ASM9, next);
        this.hasStacks = hasStacks;
        this.loader = loader;
        this.facts = facts;
        this.watch = watch;
        title = facts.name.replace('/', '.');
        isLeftOut = filter.leavesOut(title);
        // A class whose superclass is initialised first may have to wait for that.
        boolean hasSuper = facts.superName != null && !Transformer.isJdk(facts.superName) && !facts.isInterface;
        type = facts.hasInitialiser || hasSuper ? types.incrementAndGet() : 0;
        if (type != 0) {
            Log.add(lines, "I", type, title);
            if (hasSuper) {
                Log.add(lines, "H", type, facts.superName.replace('/', '.'));
            }
        }
        Sites.declare(loader, title, type, facts);
        for (ClassFacts.Field field : facts.fields) {
            Sites.declare(loader, title, field.name() + ":" + field.type(), field.access(), watch.field(title, field.name()), lines);
        }
    }

    @Override
    public void visitSource(String file, String debug) {
        source = file;
        super.visitSource(file, debug);
    }

    @Override
    public MethodVisitor visitMethod(int access, String name, String type, String signature, String[] exceptions) {
        MethodVisitor next = OldCode.of(super.visitMethod(access, name, type, signature, exceptions), facts.version);
        int locals = facts.locals[methods++];
        if (next == null || (access & (Opcodes.ACC_ABSTRACT | Opcodes.ACC_NATIVE)) != 0) {
            return next;
        }
        StackRewriter stack = hasStacks ? new StackRewriter(next, this, name, locals) : null;
        MethodVisitor marked = Tests.of(stack == null ? next : stack, facts.name, name, type);
        return new ArrayLiterals(new CodeRewriter(marked, stack, this, access, name, type, locals + StackRewriter.LOCALS));
    }

    @Override
    public void visitEnd() {
        int access = Opcodes.ACC_PRIVATE | Opcodes.ACC_STATIC | Opcodes.ACC_SYNTHETIC;
        for (Helper helper : helpers.values()) {
            MethodVisitor code = OldCode.of(super.visitMethod(access, helper.name, helper.type, null, null), facts.version);
            code.visitCode();
            helper.body.write(code);
            code.visitMaxs(0, 0);
            code.visitEnd();
        }
        if (facts.hasState()) {
            // A private transient field does not change how objects are serialised.
            super.visitField(Opcodes.ACC_PRIVATE | Opcodes.ACC_TRANSIENT | Opcodes.ACC_SYNTHETIC, Shapes.FIELD, "Ljava/lang/Object;", null, null).visitEnd();
        }
        super.visitEnd();
    }

    /** Whether the class can have helpers: old interfaces have no methods with code. */
    boolean hasHelpers() {
        return !facts.isInterface || facts.version >= Opcodes.V1_8;
    }

    /** Calls the helper for this key, which is made when it is first needed. */
    void callHelper(MethodVisitor code, String key, String type, Body body) {
        String name = helper(key, type, body);
        code.visitMethodInsn(Opcodes.INVOKESTATIC, facts.name, name, type, facts.isInterface);
    }

    String helper(String key, String type, Body body) {
        Helper helper = helpers.get(key);
        if (helper == null) {
            helper = new Helper("$fs$" + helpers.size(), type, body);
            helpers.put(key, helper);
        }
        return helper.name;
    }

    int site(String owner, String field, String method, int line) {
        String file = source != null ? source : "?";
        String place = (line > 0 ? file + ":" + line : file) + "(" + title + "." + method + ")";
        return Sites.add(owner, field, loader, place, isLeftOut, lines).number;
    }

    /** Writes the names of the class to the log, before its code can run. */
    void tell() {
        Log.flush(lines);
    }

    static void push(MethodVisitor code, int number) {
        if (number >= -1 && number <= 5) {
            code.visitInsn(Opcodes.ICONST_0 + number);
        } else if (number == (byte) number) {
            code.visitIntInsn(Opcodes.BIPUSH, number);
        } else if (number == (short) number) {
            code.visitIntInsn(Opcodes.SIPUSH, number);
        } else {
            code.visitLdcInsn(number);
        }
    }

    /** The type as which the log takes a value. */
    static String logged(String type) {
        return switch (type.charAt(0)) {
            case 'B', 'S', 'C', 'I' -> "I";
            case 'Z', 'J', 'F', 'D' -> type;
            default -> "Ljava/lang/Object;";
        };
    }

    /** Turns the value on the stack into an object. */
    static void box(MethodVisitor code, Type type) {
        String box = switch (type.getSort()) {
            case Type.BOOLEAN -> "java/lang/Boolean";
            case Type.CHAR -> "java/lang/Character";
            case Type.BYTE -> "java/lang/Byte";
            case Type.SHORT -> "java/lang/Short";
            case Type.INT -> "java/lang/Integer";
            case Type.LONG -> "java/lang/Long";
            case Type.FLOAT -> "java/lang/Float";
            case Type.DOUBLE -> "java/lang/Double";
            default -> null;
        };
        if (box != null) {
            code.visitMethodInsn(Opcodes.INVOKESTATIC, box, "valueOf", "(" + type.getDescriptor() + ")L" + box + ";", false);
        }
    }
}
