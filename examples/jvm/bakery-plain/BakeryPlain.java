/** Lamport's bakery with tickets in plain arrays, which other threads may never see; so they are drawn one after the other. */
public class BakeryPlain {
    private static final int THREADS = 2;
    private final int[] choosing = new int[THREADS];
    private final int[] ticket = new int[THREADS];
    private int bread;

    private void enter(int self) {
        choosing[self] = 1;
        int last = 0;
        for (int i = 0; i < THREADS; i++) {
            last = Math.max(last, ticket[i]);
        }
        ticket[self] = last + 1;
        choosing[self] = 0;
        for (int i = 0; i < THREADS; i++) {
            while (choosing[i] == 1) {
                Thread.yield();
            }
            while (i != self && ticket[i] != 0 && (ticket[i] < ticket[self] || ticket[i] == ticket[self] && i < self)) {
                Thread.yield();
            }
        }
    }

    private void leave(int self) {
        ticket[self] = 0;
    }

    void buy(int self) {
        for (int i = 0; i < 3; i++) {
            enter(self);
            bread++;
            leave(self);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        BakeryPlain bakery = new BakeryPlain();
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
