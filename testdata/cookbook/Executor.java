import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

public class Executor {
    static void produce(ExecutorService pool) {
        pool.execute(() -> System.out.println("job"));
    }

    public static void main(String[] arguments) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(1);
        Thread producer = new Thread(() -> produce(pool), "producer");
        producer.start();
        if (Boolean.getBoolean("right")) {
            producer.join();
        } else {
            Thread.sleep(300);
        }
        pool.shutdown();
        producer.join();
        pool.awaitTermination(10, TimeUnit.SECONDS);
    }
}
