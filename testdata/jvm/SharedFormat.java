import java.text.DateFormat;
import java.text.SimpleDateFormat;
import java.util.Date;

/** Two threads use one date format, which works on a calendar of its own. Given an argument, each has a copy. */
public class SharedFormat {
    private static final DateFormat FORMAT = new SimpleDateFormat("yyyy");

    public static void main(String[] arguments) throws InterruptedException {
        boolean isOwn = arguments.length > 0;
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            DateFormat format = isOwn ? (DateFormat) FORMAT.clone() : FORMAT;
            threads[i] = new Thread(() -> format.format(new Date(0)));
            threads[i].start();
            Thread.sleep(100);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
