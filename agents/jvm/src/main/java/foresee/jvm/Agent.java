package foresee.jvm;

import java.io.File;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.lang.instrument.Instrumentation;
import java.lang.reflect.InvocationTargetException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.jar.JarFile;

/**
 * The entry point of the agent. The rest of it lives on the bootstrap class path, where every class of the program can see it.
 *
 * <p>This class alone is compiled for Java 8: an old JVM must be able to load it, to run the program and to say why it is not
 * captured.
 */
public final class Agent {
    private static final int OLDEST = 17;

    private Agent() {}

    /** Called by the JVM before the program's main method; the argument has the settings. The program runs in any case. */
    public static void premain(String configuration, Instrumentation instrumentation) {
        try {
            String version = System.getProperty("java.specification.version");
            if (version.startsWith("1.") || Integer.parseInt(version) < OLDEST) {
                throw new IllegalStateException("Java " + version + " is too old: capture needs Java " + OLDEST + " or later");
            }
            String jar = new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI()).getPath();
            try (JarFile file = new JarFile(jar)) {
                instrumentation.appendToBootstrapClassLoaderSearch(file);
            }
            Class<?> install = Class.forName("foresee.jvm.Install", true, null);
            install.getMethod("install", String.class, String.class, Instrumentation.class).invoke(null, jar, configuration, instrumentation);
        } catch (InvocationTargetException e) {
            give(configuration, e.getCause());
        } catch (Throwable e) {
            give(configuration, e);
        }
    }

    /** Called by the JVM if the program's own file names the agent, which finds its settings beside itself. */
    public static void agentmain(String arguments, Instrumentation instrumentation) throws URISyntaxException {
        File jar = new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        premain(new File(jar.getParentFile(), "settings").getPath(), instrumentation);
    }

    /** The JVM is not captured: leaves the reason for the report, or prints it. */
    private static void give(String configuration, Throwable why) {
        String reason = why.getClass() == IllegalArgumentException.class || why.getClass() == IllegalStateException.class ? why.getMessage() : why.toString();
        if (why instanceof SecurityException) {
            reason += "; the security policy must grant the agent's file all permissions";
        }
        try {
            File file = new File(configuration);
            List<String> lines = file.isFile() ? Files.readAllLines(file.toPath(), StandardCharsets.UTF_8) : Arrays.asList(configuration.split(","));
            for (String line : lines) {
                if (line.startsWith("out ") || line.startsWith("out=")) {
                    File out = new File(line.substring("out ".length()));
                    File folder = new File(out.isAbsolute() ? out : new File(file.getAbsoluteFile().getParentFile(), out.getPath()), "0-" + System.nanoTime() + ".jvm");
                    if (folder.mkdirs()) {
                        try (OutputStream names = new FileOutputStream(new File(folder, "names"))) {
                            String text = "V\t5\t" + System.getProperty("java.version") + "\nU\t0\ta JVM was not captured: " + reason.replaceAll("\\s+", " ") + "\nE\t0\t\n";
                            names.write(text.getBytes(StandardCharsets.UTF_8));
                        }
                        return;
                    }
                }
            }
        } catch (Exception e) {
            // Then there is only one place to say it.
        }
        System.err.println("foresee: this program is not captured: " + reason);
    }
}
