package plant;

import java.util.concurrent.locks.ReentrantLock;

/** Valves that are opened one after the other, but only because one thread happens to be later. */
public class Plant {
    static class Valve {
        boolean open;
        final ReentrantLock lock = new ReentrantLock();

        void cycle() {
            open = true;
            lock.lock();
            lock.unlock();
            open = false;
        }
    }

    static class SafetyValve extends Valve {}

    public static void main(String[] arguments) throws InterruptedException {
        Valve first = new Valve();
        Valve second = arguments.length > 0 ? new SafetyValve() : new Valve();
        Thread one = new Thread(first::cycle);
        Thread two = new Thread(() -> {
            try {
                Thread.sleep(100);
            } catch (InterruptedException e) {
                return;
            }
            second.cycle();
        });
        one.start();
        two.start();
        one.join();
        two.join();
    }
}
