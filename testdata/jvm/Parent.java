import java.io.File;
import java.util.List;

/** Starts a JVM of its own, directly or by way of a shell; the race is in there. */
public class Parent {
    public static void main(String[] arguments) throws Exception {
        String java = new File(System.getProperty("java.home"), "bin/java").getPath();
        String classes = System.getProperty("java.class.path");
        List<String> direct = List.of(java, "-cp", classes, "RacyCounter");
        List<String> command = arguments[0].equals("direct") ? direct : List.of("sh", "-c", String.join(" ", direct));
        ProcessBuilder builder = new ProcessBuilder(command).inheritIO();
        int status = builder.start().waitFor();
        if (status != 0 || !builder.command().equals(command)) {
            throw new AssertionError(status);
        }
    }
}
