/** Counts for as long as it is allowed to live. */
public class Ticking {
    static int count;

    public static void main(String[] arguments) throws InterruptedException {
        Thread counter = new Thread(() -> {
            for (int i = 0; i < 1_000_000; i++) {
                count = i;
                try {
                    Thread.sleep(5);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }, "counter");
        counter.start();
        counter.join();
    }
}
