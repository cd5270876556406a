/** Little but accesses of fields and arrays, each thread on objects of its own. */
public class Fields {
    static final class Node {
        int count;
        long mixed;
        Node next;
    }

    static int total;
    final int[] slots = new int[64];
    Node head = new Node();

    int work(int rounds) {
        for (int i = 0; i < rounds; i++) {
            head.count += i;
            head.mixed ^= head.count;
            slots[i & 63] += head.count;
            if ((i & 15) == 0) {
                Node node = new Node();
                node.count = i;
                node.next = head;
                head.count += node.count;
            }
        }
        return head.count + slots[3];
    }

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Integer.parseInt(arguments[0]);
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                int result = new Fields().work(rounds);
                synchronized (Fields.class) {
                    total += result;
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
