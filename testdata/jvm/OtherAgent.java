import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

/** An agent that looks at every class and changes none. */
public class OtherAgent implements ClassFileTransformer {
    private static int seen;

    public static void premain(String argument, Instrumentation instrumentation) {
        instrumentation.addTransformer(new OtherAgent());
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> redefined, ProtectionDomain domain, byte[] bytes) {
        synchronized (OtherAgent.class) {
            seen += bytes.length;
        }
        return null;
    }
}
