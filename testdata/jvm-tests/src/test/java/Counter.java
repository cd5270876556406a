/** Counts without a lock. */
final class Counter {
    private int count;

    void add() {
        count++;
    }

    /** Adds from two threads, which race with each other. */
    static int twice() throws InterruptedException {
        Counter counter = new Counter();
        Thread one = new Thread(counter::add);
        Thread two = new Thread(counter::add);
        one.start();
        two.start();
        one.join();
        two.join();
        return counter.count;
    }
}
