package foresee.jvm;

import java.lang.instrument.ClassFileTransformer;
import java.security.ProtectionDomain;
import java.util.List;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.MethodTooLargeException;
import org.objectweb.asm.Opcodes;

/** Transforms the program's classes as they are loaded. */
final class Transformer implements ClassFileTransformer {
    /** The newest class files that the bundled ASM reads. */
    private static final int NEWEST = Opcodes.V25;
    private static final int MAJOR_AT = 7;

    private final Watch watch;
    private final Filter filter;

    Transformer(Watch watch, Filter filter) {
        this.watch = watch;
        this.filter = filter;
        Helpers.watch = watch;
    }

    @Override
    public byte[] transform(Module module, ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        // The agent's classes, and those that they need, are loaded while it transforms others, so not even a class of its own
        // may be needed to see that they are left alone.
        if (name == null || loader == null && !name.startsWith("java/util/") && !name.startsWith("java/lang/")) {
            return null;
        }
        try {
            if (loader == null) {
                return JdkRewriter.isMeant(name) ? JdkRewriter.rewrite(name, bytes) : null;
            }
            return redefined != null || isLeftOut(name) ? null : rewrite(loader, name, bytes);
        } catch (Throwable e) {
            // Whatever went wrong must not break the program, nor pass in silence.
            Log.unordered("the class " + name.replace('/', '.') + " was not transformed: " + e);
            return null;
        }
    }

    /** Classes of the JDK and of the agent; the former are seen where the program calls them. */
    static boolean isLeftOut(String name) {
        return isJdk(name) || name.startsWith("foresee/jvm/");
    }

    static boolean isJdk(String name) {
        return name.startsWith("java/") || name.startsWith("javax/") || name.startsWith("jdk/") || name.startsWith("sun/")
                || name.startsWith("com/sun/");
    }

    private byte[] rewrite(ClassLoader loader, String name, byte[] bytes) {
        int major = bytes[MAJOR_AT] & 0xff;
        ClassReader reader = reader(bytes);
        ClassFacts facts = new ClassFacts();
        reader.accept(facts, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG);
        facts.readLocals(reader);
        Hierarchy.declare(loader, facts);
        byte[] rewritten;
        try {
            rewritten = rewrite(loader, reader, facts, Log.hasStacks);
        } catch (MethodTooLargeException e) {
            // Without call stacks it may fit. Its methods are then left out of them, like those of the JDK.
            if (!Log.hasStacks) {
                throw e;
            }
            rewritten = rewrite(loader, reader, facts, false);
        }
        if (major > (NEWEST & 0xff)) {
            rewritten[MAJOR_AT] = (byte) major;
        }
        return rewritten;
    }

    private byte[] rewrite(ClassLoader loader, ClassReader reader, ClassFacts facts, boolean hasStacks) {
        ClassWriter writer = new ClassWriter(reader, ClassWriter.COMPUTE_MAXS);
        ClassRewriter rewriter = new ClassRewriter(writer, loader, facts, watch, filter, hasStacks);
        reader.accept(rewriter, hasStacks ? ClassReader.EXPAND_FRAMES : 0);
        byte[] rewritten = writer.toByteArray();
        rewriter.tell();
        return rewritten;
    }

    /** Reads a class; one that is newer than the reader is taken for the newest that it knows. */
    static ClassReader reader(byte[] bytes) {
        byte[] readable = bytes;
        if ((bytes[MAJOR_AT] & 0xff) > (NEWEST & 0xff)) {
            readable = bytes.clone();
            readable[MAJOR_AT] = (byte) NEWEST;
        }
        return new ClassReader(readable);
    }

    /** What specifications name: fields and methods, by the ends of their full names. */
    record Watch(List<String> fields, List<String> objects, List<String> methods) {
        /** How a field is watched: not at all, by its name, or as one of the objects of a type. */
        char field(String type, String name) {
            if (matches(objects, type + "." + name)) {
                return 'o';
            }
            return inherits(fields, name) || inherits(objects, name) ? 'w' : '-';
        }

        /** The object may be of a class that inherits the field, and be named after that. */
        private static boolean inherits(List<String> names, String field) {
            for (String name : names) {
                if (name.equals(field) || name.endsWith("." + field)) {
                    return true;
                }
            }
            return false;
        }

        static boolean matches(List<String> names, String full) {
            // Nested classes are written with a dot.
            String dotted = full.replace('$', '.');
            for (String name : names) {
                String end = name.replace('$', '.');
                if (dotted.equals(end) || dotted.endsWith("." + end)) {
                    return true;
                }
            }
            return false;
        }
    }
}
