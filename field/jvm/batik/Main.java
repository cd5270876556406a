import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import org.apache.batik.transcoder.TranscoderException;
import org.apache.batik.transcoder.TranscoderInput;
import org.apache.batik.transcoder.TranscoderOutput;
import org.apache.batik.transcoder.image.PNGTranscoder;

/** Two threads draw a picture with Batik, each with a transcoder of its own. */
public class Main {
    private static final String PICTURE = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'>"
            + "<circle cx='20' cy='20' r='15' fill='red'/><path d='M5 5 L35 35' stroke='blue'/></svg>";

    public static void main(String[] arguments) throws InterruptedException {
        System.setProperty("java.awt.headless", "true");
        int[] sizes = new int[2];
        Thread[] threads = new Thread[sizes.length];
        for (int t = 0; t < threads.length; t++) {
            int number = t;
            threads[t] = new Thread(() -> sizes[number] = draw(), "painter " + t);
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(sizes[0] == sizes[1] && sizes[0] > 0 ? "the same picture" : "different pictures");
    }

    private static int draw() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try {
            new PNGTranscoder().transcode(new TranscoderInput(new StringReader(PICTURE)), new TranscoderOutput(bytes));
        } catch (TranscoderException e) {
            throw new IllegalStateException(e);
        }
        return bytes.size();
    }
}
