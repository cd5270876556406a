package foresee.jvm;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.util.Map;
import java.util.Set;

/** Reads the configuration and begins to record. */
public final class Install {
    private Install() {}

    public static void install(String jar, String configuration, Instrumentation instrumentation) throws IOException {
        // It may be given twice, as an argument and by the environment.
        if (Log.folder != null) {
            return;
        }
        // Build tools run in a JVM of their own and start others; only those others are the program.
        if (isBuildTool(System.getProperty("sun.java.command", ""))) {
            return;
        }
        // Records are written into memory of the agent's own, without checks that were made before.
        Module agent = Install.class.getModule();
        instrumentation.redefineModule(Object.class.getModule(), Set.of(), Map.of("jdk.internal.misc", Set.of(agent)), Map.of(), Set.of(), Map.of());
        Settings settings = Settings.of(configuration);
        Log.limit = settings.limit;
        Log.isAsync = settings.isAsync;
        Log.hasStacks = settings.hasStacks;
        Log.hasLocals = settings.hasLocals;
        Log.isSent = settings.observer != null;
        if (Log.isSent) {
            Sender.check(settings);
        }
        boolean isFolderOurs = settings.folder == null;
        Log.open(isFolderOurs ? Files.createTempDirectory("foresee-jvm") : settings.folder);
        Sender sender = Log.isSent ? new Sender(settings, Log.folder) : null;
        Children.prepare(jar, configuration);
        // The main thread is there from the beginning, whatever it does.
        ThreadLog.current();
        JdkRewriter.prepare();
        Transformer transformer = new Transformer(new Transformer.Watch(settings.fields, settings.objects, settings.methods), new Filter(settings.included, settings.excluded));
        instrumentation.addTransformer(transformer, true);
        JdkRewriter.retransform(instrumentation);
        Threads.own = new Thread(() -> end(instrumentation, sender, isFolderOurs), "foresee");
        Runtime.getRuntime().addShutdownHook(Threads.own);
        if (sender != null) {
            sender.start();
        }
        Log.isOn = true;
    }

    /** The JVM shuts down in an orderly way. What other threads still do is recorded as long as they run. */
    private static void end(Instrumentation instrumentation, Sender sender, boolean isFolderOurs) {
        ThreadLog.ignore();
        Class<?>[] loaded = instrumentation.getAllLoadedClasses();
        JdkRewriter.tellMissed(loaded);
        for (Class<?> type : loaded) {
            String name = type.getName();
            boolean isOurs = type.getClassLoader() != null && !type.isArray() && !Transformer.isLeftOut(name.replace('.', '/'));
            // The JVM does not report that it could not call the transformer, for example because
            // the stack was full.
            if (isOurs && !isGenerated(type) && !Sites.isDeclared(type)) {
                Log.unordered("the class " + name + " was not transformed");
            }
        }
        Log.end();
        if (sender != null) {
            sender.finish(isFolderOurs);
        }
    }

    /** Whether the JVM made the class for a lambda expression or the like, and there is no code of the program in it. */
    private static boolean isGenerated(Class<?> type) {
        String name = type.getName();
        return type.isHidden() && (name.contains("$$Lambda") || name.contains("$$InjectedInvoker") || name.contains("LambdaForm$") || name.contains("$$StringConcat")
                || name.contains("$$TypeSwitch") || name.contains("MethodHandleProxies") || name.startsWith("com.sun.proxy.") || name.startsWith("jdk.proxy"));
    }

    private static boolean isBuildTool(String command) {
        String main = command.split(" ", 2)[0];
        return main.startsWith("org.codehaus.plexus.classworlds.launcher.") || main.startsWith("org.apache.maven.wrapper.")
                || main.startsWith("org.gradle.launcher.") || main.startsWith("org.gradle.wrapper.")
                || main.startsWith("com.sun.tools.javac.") || main.startsWith("jdk.compiler/") || main.startsWith("worker.org.gradle.process.internal.worker.GradleWorkerMain") && command.contains("Gradle Compiler");
    }
}
