import java.util.ArrayDeque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** A producer and a consumer, with a monitor's wait and with a condition. */
public class WaitNotify {
    private final ArrayDeque<int[]> queue = new ArrayDeque<>();
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition filled = lock.newCondition();
    private int[] slot;

    synchronized void put(int[] item) {
        queue.add(item);
        notifyAll();
    }

    synchronized int[] take() throws InterruptedException {
        while (queue.isEmpty()) {
            wait();
        }
        return queue.poll();
    }

    void fill(int[] item) {
        lock.lock();
        try {
            slot = item;
            filled.signal();
        } finally {
            lock.unlock();
        }
    }

    int[] drain() throws InterruptedException {
        lock.lock();
        try {
            while (slot == null) {
                filled.await();
            }
            return slot;
        } finally {
            lock.unlock();
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        WaitNotify shared = new WaitNotify();
        Thread consumer = new Thread(() -> {
            try {
                int sum = 0;
                for (int i = 0; i < 3; i++) {
                    sum += shared.take()[0]++;
                }
                sum += shared.drain()[0]++;
                if (sum != 0 + 1 + 2 + 9) {
                    throw new AssertionError(sum);
                }
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        consumer.start();
        for (int i = 0; i < 3; i++) {
            int[] item = {0};
            item[0] = i;
            shared.put(item);
        }
        shared.fill(new int[] {9});
        consumer.join();
    }
}
