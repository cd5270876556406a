import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/** A servlet in an embedded Tomcat, asked by four clients at once. It counts in two ways, one of which is wrong. */
public class Main {
    static final class Counting extends HttpServlet {
        private static final long serialVersionUID = 1;
        private int plain;
        private final transient AtomicInteger counted = new AtomicInteger();

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            plain++;
            response.getWriter().println(counted.incrementAndGet());
        }
    }

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("").setLevel(Level.OFF);
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("tomcat").toString());
        tomcat.setPort(0);
        tomcat.getConnector();
        Context context = tomcat.addContext("", null);
        Counting servlet = new Counting();
        Tomcat.addServlet(context, "count", servlet);
        context.addServletMappingDecoded("/", "count");
        tomcat.start();
        URI uri = URI.create("http://127.0.0.1:" + tomcat.getConnector().getLocalPort() + "/");
        Thread[] threads = new Thread[4];
        AtomicInteger ok = new AtomicInteger();
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> ask(uri, ok), "client " + t);
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        tomcat.stop();
        tomcat.destroy();
        System.out.println(ok.get() + " answers, " + servlet.counted.get() + " counted");
    }

    private static void ask(URI uri, AtomicInteger ok) {
        HttpClient client = HttpClient.newHttpClient();
        try {
            for (int i = 0; i < 10; i++) {
                HttpResponse<String> answer = client.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString());
                if (answer.statusCode() == 200) {
                    ok.incrementAndGet();
                }
            }
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
