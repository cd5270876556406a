package foresee.jvm;

import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Which classes of the program inherit methods from the JDK: a call of a lock, a queue or a list may name the program's own class.
 *
 * <p>Classes are read as files, because loading one while another is transformed may fail; and one of the JDK that is loaded then
 * would not be transformed itself.
 */
final class Hierarchy {
    /** A class of the program. */
    private record Known(String parent, List<String> interfaces, Set<String> methods) {}

    private static final Known MISSING = new Known(null, List.of(), Set.of());
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

    /** Whether objects of a class that does not extend {@code Object} itself have a field for the agent, by inheritance. */
    static boolean hasState(ClassLoader loader, ClassFacts facts) {
        String type = facts.superName;
        while (type != null && !Transformer.isJdk(type)) {
            type = known(loader, type).parent;
        }
        return "java/lang/Object".equals(type);
    }

    /** Whether the JDK may call methods of objects of a class to get an object. */
    static boolean isAsked(ClassLoader loader, ClassFacts facts) {
        Deque<String> left = new ArrayDeque<>(List.of(facts.interfaces));
        if (facts.superName != null) {
            left.add(facts.superName);
        }
        while (!left.isEmpty()) {
            String type = left.pop();
            if (Transformer.isJdk(type)) {
                if (Escapes.isAsked(type)) {
                    return true;
                }
                continue;
            }
            Known known = known(loader, type);
            if (known == MISSING) {
                return true;
            }
            left.addAll(known.interfaces);
            if (known.parent != null) {
                left.add(known.parent);
            }
        }
        return false;
    }

    private static Known known(ClassLoader loader, String type) {
        synchronized (classes) {
            Map<String, Known> all = classes.get(loader);
            Known known = all == null ? null : all.get(type);
            if (known != null) {
                return known;
            }
        }
        Known read = read(loader, type);
        synchronized (classes) {
            Map<String, Known> all = classes.get(loader);
            if (all == null) {
                all = new HashMap<>();
                classes.put(loader, all);
            }
            all.put(type, read);
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
            List<String> above = new ArrayList<>();
            Transformer.reader(bytes).accept(new ClassVisitor(Opcodes.ASM9) {
                @Override
                public void visit(int version, int access, String name, String signature, String superName, String[] interfaces) {
                    parent[0] = superName;
                    above.addAll(List.of(interfaces));
                }

                @Override
                public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                    methods.add(name + descriptor);
                    return null;
                }
            }, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG);
            return new Known(parent[0], above, methods);
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

    /** The methods of a class of the JDK, with those that it inherits. */
    private static Set<String> methods(String type) {
        Set<String> all = new HashSet<>();
        Deque<String> left = new ArrayDeque<>(List.of(type));
        Set<String> seen = new HashSet<>();
        while (!left.isEmpty()) {
            String name = left.pop();
            if (name.equals("java/lang/Object") || !seen.add(name)) {
                continue;
            }
            Known known = read(ClassLoader.getPlatformClassLoader(), name);
            all.addAll(known.methods);
            left.addAll(known.interfaces);
            if (known.parent != null) {
                left.add(known.parent);
            }
        }
        return all;
    }
}
