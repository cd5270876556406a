/** A volatile flag publishes a plain field. */
public class VolatileFlag {
    private int data;
    private volatile boolean ready;

    public static void main(String[] arguments) throws InterruptedException {
        VolatileFlag shared = new VolatileFlag();
        Thread reader = new Thread(() -> {
            while (!shared.ready) {
                Thread.onSpinWait();
            }
            if (shared.data != 42) {
                throw new AssertionError();
            }
        });
        reader.start();
        shared.data = 42;
        shared.ready = true;
        reader.join();
    }
}
