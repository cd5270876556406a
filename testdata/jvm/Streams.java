/** Writes to both streams. */
public class Streams {
    static int count;

    public static void main(String[] arguments) throws InterruptedException {
        Thread thread = new Thread(() -> count++);
        thread.start();
        thread.join();
        System.out.println("out " + count);
        System.out.flush();
        System.err.println("err");
    }
}
