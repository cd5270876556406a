/** Ends in one of several ways, after a race in all but the first two. */
public class Endings {
    static int shared;

    public static void main(String[] arguments) throws Exception {
        Thread thread = new Thread(() -> shared = 1);
        thread.start();
        boolean isRacy = arguments[0].equals("kill");
        if (isRacy) {
            shared = 2;
        }
        thread.join();
        switch (arguments[0]) {
            case "exit" -> System.exit(0);
            case "halt" -> Runtime.getRuntime().halt(0);
            case "throw" -> throw new IllegalStateException("as asked");
            default -> {
                new ProcessBuilder("kill", "-9", Long.toString(ProcessHandle.current().pid())).start().waitFor();
                Thread.sleep(60_000);
            }
        }
    }
}
