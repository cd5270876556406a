import java.util.concurrent.atomic.AtomicIntegerArray;

/** Lamport's bakery: threads draw tickets, and the lowest one is served. */
public class Bakery {
    private static final int THREADS = 2;
    private final AtomicIntegerArray choosing = new AtomicIntegerArray(THREADS);
    private final AtomicIntegerArray ticket = new AtomicIntegerArray(THREADS);
    private int bread;

    private void enter(int self) {
        choosing.set(self, 1);
        int last = 0;
        for (int i = 0; i < THREADS; i++) {
            last = Math.max(last, ticket.get(i));
        }
        ticket.set(self, last + 1);
        choosing.set(self, 0);
        for (int i = 0; i < THREADS; i++) {
            while (choosing.get(i) == 1) {
                Thread.yield();
            }
            while (i != self && ticket.get(i) != 0 && (ticket.get(i) < ticket.get(self) || ticket.get(i) == ticket.get(self) && i < self)) {
                Thread.yield();
            }
        }
    }

    private void leave(int self) {
        ticket.set(self, 0);
    }

    /** Only one customer at a time may do this. */
    private void bake() {
        bread++;
    }

    void buy(int self) {
        for (int i = 0; i < 3; i++) {
            enter(self);
            bake();
            leave(self);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Bakery bakery = new Bakery();
        Thread[] customers = new Thread[THREADS];
        for (int i = 0; i < THREADS; i++) {
            int self = i;
            customers[i] = new Thread(() -> bakery.buy(self));
            customers[i].start();
        }
        for (Thread customer : customers) {
            customer.join();
        }
        System.out.println(bakery.bread + " loaves");
    }
}
