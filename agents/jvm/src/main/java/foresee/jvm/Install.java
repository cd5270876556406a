package foresee.jvm;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Reads the configuration and begins to record. */
public final class Install {
    private Install() {}

    public static void install(String jar, String configuration, Instrumentation instrumentation) throws IOException {
        if (configuration == null || configuration.isEmpty()) {
            throw new IllegalArgumentException("the agent needs its configuration: -javaagent:foresee-jvm.jar=FILE");
        }
        if (!Files.isReadable(Path.of(configuration))) {
            throw new IllegalArgumentException("the agent's configuration cannot be read: " + configuration);
        }
        // It may be given twice, as an argument and by the environment.
        if (Log.folder != null) {
            return;
        }
        // Build tools run in a JVM of their own and start others; only those others are the program.
        if (isBuildTool(System.getProperty("sun.java.command", ""))) {
            return;
        }
        Path folder = null;
        List<String> fields = new ArrayList<>();
        List<String> methods = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(configuration))) {
            int space = line.indexOf(' ');
            String word = space < 0 ? line : line.substring(0, space);
            String rest = space < 0 ? "" : line.substring(space + 1);
            switch (word) {
                case "out" -> folder = Path.of(rest);
                case "limit" -> Log.limit = number(rest);
                case "mode" -> Log.isAsync = isAsync(rest);
                case "field" -> fields.add(rest);
                case "method" -> methods.add(rest);
                case "" -> { }
                default -> throw new IllegalArgumentException(configuration + ": unknown setting `" + word + "`");
            }
        }
        if (folder == null) {
            throw new IllegalArgumentException(configuration + ": there is no `out` in it");
        }
        Log.open(folder);
        Children.prepare(jar, configuration);
        // The main thread is there from the beginning, whatever it does.
        ThreadLog.current();
        Transformer transformer = new Transformer(new Transformer.Watch(fields, methods));
        instrumentation.addTransformer(transformer, true);
        JdkRewriter.retransform(instrumentation);
        Threads.own = new Thread(() -> end(instrumentation), "foresee");
        Runtime.getRuntime().addShutdownHook(Threads.own);
        Log.isOn = true;
    }

    /** The JVM shuts down in an orderly way. What other threads still do is recorded as long as they run. */
    private static void end(Instrumentation instrumentation) {
        for (Class<?> type : instrumentation.getAllLoadedClasses()) {
            String name = type.getName();
            boolean isOurs = type.getClassLoader() != null && !type.isArray() && !Transformer.isLeftOut(name.replace('.', '/'));
            // The JVM does not report that it could not call the transformer, for example because
            // the stack was full.
            if (isOurs && !isGenerated(type) && !Sites.isDeclared(type)) {
                Log.unordered("the class " + name + " was not transformed");
            }
        }
        Log.end();
    }

    /** Whether the JVM made the class for a lambda expression or the like, and there is no code of the program in it. */
    private static boolean isGenerated(Class<?> type) {
        String name = type.getName();
        return type.isHidden() && (name.contains("$$Lambda") || name.contains("$$InjectedInvoker") || name.contains("LambdaForm$") || name.contains("$$StringConcat")
                || name.contains("$$TypeSwitch") || name.contains("MethodHandleProxies") || name.startsWith("com.sun.proxy.") || name.startsWith("jdk.proxy"));
    }

    private static boolean isAsync(String mode) {
        return switch (mode) {
            case "async" -> true;
            case "sync" -> false;
            default -> throw new IllegalArgumentException("`" + mode + "` is not a mode: sync or async");
        };
    }

    private static long number(String text) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("`" + text + "` is not a number of bytes");
        }
    }

    private static boolean isBuildTool(String command) {
        String main = command.split(" ", 2)[0];
        return main.startsWith("org.codehaus.plexus.classworlds.launcher.") || main.startsWith("org.apache.maven.wrapper.")
                || main.startsWith("org.gradle.launcher.") || main.startsWith("org.gradle.wrapper.")
                || main.startsWith("com.sun.tools.javac.") || main.startsWith("jdk.compiler/") || main.startsWith("worker.org.gradle.process.internal.worker.GradleWorkerMain") && command.contains("Gradle Compiler");
    }
}
