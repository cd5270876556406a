package foresee.jvm;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.Attributes;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Copies a program into a folder from which it runs with the agent, without a flag: {@code java -jar OUT/run.jar}.
 *
 * <p>The manifest of that file names the classes and the agent, which the JVM starts before the program. Steps of the JDK have
 * to be recorded as well, so an agent there must be.
 */
public final class Bundle {
    private static final List<String> KEPT = List.of("Add-Exports", "Add-Opens", "Enable-Native-Access");

    private final Path out;
    private final List<String> path = new ArrayList<>();
    private final Attributes attributes;
    private String main;

    private Bundle(Path out, Attributes attributes, String main) {
        this.out = out;
        this.attributes = attributes;
        this.main = main;
    }

    /** The folder, the class with the main method or `-`, and the files. */
    public static void main(String[] arguments) {
        Manifest manifest = new Manifest();
        Bundle bundle = new Bundle(Path.of(arguments[0]), manifest.getMainAttributes(), arguments[1].equals("-") ? null : arguments[1]);
        try {
            for (int i = 2; i < arguments.length; i++) {
                bundle.add(Path.of(arguments[i]));
            }
            bundle.write(manifest);
        } catch (IOException | IllegalArgumentException e) {
            System.err.println(e instanceof IOException ? e.toString() : e.getMessage());
            System.exit(2);
        }
    }

    private void add(Path file) throws IOException {
        String name = file.getFileName().toString();
        if (name.endsWith(".jar")) {
            Path copy = out.resolve("program").resolve(name);
            if (Files.exists(copy)) {
                throw new IllegalArgumentException("there are two files called " + name);
            }
            try (JarFile jar = new JarFile(file.toFile())) {
                Manifest own = jar.getManifest();
                if (own != null && main == null) {
                    take(own.getMainAttributes());
                }
            }
            Files.createDirectories(copy.getParent());
            Files.copy(file, copy);
            path.add(out.relativize(copy).toString());
            return;
        }
        byte[] bytes = Files.readAllBytes(file);
        String type;
        boolean[] hasMain = new boolean[1];
        try {
            ClassReader reader = Transformer.reader(bytes);
            type = reader.getClassName();
            reader.accept(new ClassVisitor(Opcodes.ASM9) {
                @Override
                public MethodVisitor visitMethod(int access, String method, String descriptor, String signature, String[] exceptions) {
                    hasMain[0] |= method.equals("main") && descriptor.equals("([Ljava/lang/String;)V") && (access & Opcodes.ACC_STATIC) != 0;
                    return null;
                }
            }, ClassReader.SKIP_CODE | ClassReader.SKIP_DEBUG);
        } catch (RuntimeException e) {
            throw new IllegalArgumentException(file + " is neither a jar nor a class file");
        }
        Path classes = out.resolve("program/classes");
        Path copy = classes.resolve(type + ".class");
        Files.createDirectories(copy.getParent());
        Files.write(copy, bytes);
        String folder = out.relativize(classes) + "/";
        if (!path.contains(folder)) {
            path.add(folder);
        }
        if (main == null && hasMain[0]) {
            main = type.replace('/', '.');
        }
    }

    private void take(Attributes own) {
        main = own.getValue(Attributes.Name.MAIN_CLASS);
        for (String kept : KEPT) {
            if (main != null && own.getValue(kept) != null) {
                attributes.putValue(kept, own.getValue(kept));
            }
        }
    }

    private void write(Manifest manifest) throws IOException {
        if (main == null) {
            throw new IllegalArgumentException("none of the files says which class has the main method: name it with --main");
        }
        path.add("foresee-jvm.jar");
        List<String> addresses = new ArrayList<>();
        for (String entry : path) {
            // Spaces separate them.
            addresses.add(entry.replace("%", "%25").replace(" ", "%20"));
        }
        attributes.put(Attributes.Name.MANIFEST_VERSION, "1.0");
        attributes.put(Attributes.Name.MAIN_CLASS, main);
        attributes.put(Attributes.Name.CLASS_PATH, String.join(" ", addresses));
        attributes.putValue("Launcher-Agent-Class", "foresee.jvm.Agent");
        attributes.putValue("Can-Retransform-Classes", "true");
        attributes.putValue("Can-Redefine-Classes", "true");
        try (OutputStream file = Files.newOutputStream(out.resolve("run.jar")); JarOutputStream jar = new JarOutputStream(file, manifest)) {
            jar.finish();
        }
    }
}
