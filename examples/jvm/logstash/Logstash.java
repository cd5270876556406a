import java.io.IOException;
import net.logstash.logback.util.ReusableByteBuffer;

/** One thread fills a buffer of logstash-logback-encoder, another closes it; nothing makes the second wait but time. */
public class Logstash {
    public static void main(String[] arguments) throws InterruptedException {
        ReusableByteBuffer buffer = new ReusableByteBuffer(16);
        Thread writer = new Thread(() -> {
            byte[] line = "a line that is longer than the buffer\n".getBytes();
            try {
                for (int i = 0; i < 3; i++) {
                    buffer.write(line, 0, line.length);
                }
            } catch (IOException e) {
                System.out.println("lost: " + e);
            }
        }, "writer");
        Thread closer = new Thread(() -> {
            pause(300);
            buffer.close();
        }, "closer");
        writer.start();
        closer.start();
        writer.join();
        closer.join();
        System.out.println(buffer.size() + " bytes");
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
