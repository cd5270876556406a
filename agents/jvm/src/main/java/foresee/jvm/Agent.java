package foresee.jvm;

import java.io.File;
import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/** The entry point of the agent. The rest of it lives on the bootstrap class path, where every class of the program can see it. */
public final class Agent {
    private Agent() {}

    /** Called by the JVM before the program's main method; the argument is the configuration file. */
    public static void premain(String configuration, Instrumentation instrumentation) throws Exception {
        String jar = new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI()).getPath();
        try (JarFile file = new JarFile(jar)) {
            instrumentation.appendToBootstrapClassLoaderSearch(file);
        }
        Install.install(configuration, instrumentation);
    }
}
