/** Producers and consumers with a buffer of two places. */
public class Producers {
    private final int[] buffer = new int[2];
    private int filled;

    private void store(int item) {
        buffer[filled++] = item;
    }

    private int load() {
        return buffer[--filled];
    }

    synchronized void put(int item) throws InterruptedException {
        while (filled == buffer.length) {
            wait();
        }
        store(item);
        notifyAll();
    }

    synchronized int take() throws InterruptedException {
        while (filled == 0) {
            wait();
        }
        int item = load();
        notifyAll();
        return item;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Producers shared = new Producers();
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            boolean isProducer = i % 2 == 0;
            threads[i] = new Thread(() -> {
                try {
                    for (int k = 1; k <= 3; k++) {
                        if (isProducer) {
                            shared.put(k);
                        } else {
                            shared.take();
                        }
                    }
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }, (isProducer ? "producer " : "consumer ") + i / 2);
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(shared.filled + " left");
    }
}
