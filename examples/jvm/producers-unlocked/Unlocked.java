/** A producer and a consumer whose buffer is checked and emptied without the lock. */
public class Unlocked {
    private final int[] buffer = new int[8];
    private int filled;

    private void store(int item) {
        buffer[filled++] = item;
    }

    private int load() {
        return filled == 0 ? 0 : buffer[--filled];
    }

    synchronized void put(int item) {
        store(item);
    }

    int take() {
        return load();
    }

    public static void main(String[] arguments) throws InterruptedException {
        Unlocked shared = new Unlocked();
        Thread producer = new Thread(() -> {
            for (int i = 1; i <= 3; i++) {
                shared.put(i);
            }
        }, "producer");
        Thread consumer = new Thread(() -> {
            for (int i = 1; i <= 3; i++) {
                shared.take();
            }
        }, "consumer");
        producer.start();
        consumer.start();
        producer.join();
        consumer.join();
        System.out.println("done");
    }
}
