package foresee.jvm;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.Type;

/**
 * Which classes of the program inherit methods from the JDK: a call of a lock, a queue or a list may name the program's own class.
 *
 * <p>Classes are read as files, because loading one while another is transformed may fail.
 */
final class Hierarchy {
    /** A class of the program. */
    private record Known(String parent, Set<String> methods) {}

    private static final Known MISSING = new Known(null, Set.of());
    private static final Map<ClassLoader, Map<String, Known>> classes = new WeakHashMap<>();
    private static final Map<String, Set<String>> jdk = new HashMap<>();

    private Hierarchy() {}

    /** The class of the JDK from which a class of the program inherits the method, or the class itself. */
    static String origin(ClassLoader loader, String owner, String name, String descriptor) {
        String type = owner;
        while (type != null && !Transformer.isJdk(type)) {
            Known known = known(loader, type);
            if (known.methods.contains(name + descriptor)) {
                return owner;
            }
            type = known.parent;
        }
        boolean isInherited = type != null && !type.equals("java/lang/Object") && !type.equals("java/lang/Thread") && hasMethod(type, name + descriptor);
        return isInherited ? type : owner;
    }

    private static Known known(ClassLoader loader, String type) {
        synchronized (classes) {
            Known known = classes.computeIfAbsent(loader, l -> new HashMap<>()).get(type);
            if (known != null) {
                return known;
            }
        }
        Known read = read(loader, type);
        synchronized (classes) {
            classes.computeIfAbsent(loader, l -> new HashMap<>()).put(type, read);
        }
        return read;
    }

    private static Known read(ClassLoader loader, String type) {
        try (InputStream file = loader.getResourceAsStream(type + ".class")) {
            if (file == null) {
                return MISSING;
            }
            byte[] bytes = file.readAllBytes();
            Set<String> methods = new HashSet<>();
            String[] parent = new String[1];
            Transformer.reader(bytes).accept(new ClassVisitor(Opcodes.ASM9) {
                @Override
                public void visit(int version, int access, String name, String signature, String superName, String[] interfaces) {
                    parent[0] = superName;
                }

                @Override
                public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                    methods.add(name + descriptor);
                    return null;
                }
            }, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG);
            return new Known(parent[0], methods);
        } catch (IOException | RuntimeException e) {
            return MISSING;
        }
    }

    /** A class is about to be loaded. What could not be read before it was made is known only now. */
    static void declare(ClassLoader loader, ClassFacts facts) {
        boolean isLate;
        synchronized (classes) {
            isLate = classes.getOrDefault(loader, Map.of()).get(facts.name) == MISSING;
        }
        if (isLate && facts.superName.startsWith("java/util/")) {
            Log.unordered("the class " + facts.name.replace('/', '.') + " extends " + facts.superName.replace('/', '.') + ", whose calls are not followed");
        }
    }

    private static boolean hasMethod(String type, String method) {
        synchronized (jdk) {
            return jdk.computeIfAbsent(type, Hierarchy::methods).contains(method);
        }
    }

    private static Set<String> methods(String type) {
        Set<String> all = new HashSet<>();
        try {
            for (Class<?> up = Class.forName(type.replace('/', '.'), false, ClassLoader.getPlatformClassLoader()); up != null && up != Object.class; up = up.getSuperclass()) {
                add(up.getDeclaredMethods(), all);
                add(up.getMethods(), all);
            }
        } catch (ClassNotFoundException | LinkageError e) {
            // Not a class whose calls are followed.
        }
        return all;
    }

    private static void add(Method[] methods, Set<String> all) {
        for (Method method : methods) {
            if (method.getDeclaringClass() != Object.class) {
                all.add(method.getName() + Type.getMethodDescriptor(method));
            }
        }
    }
}
