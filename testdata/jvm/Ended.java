/** Ways to learn that a thread has ended, or was interrupted or woken. */
public class Ended {
    private static int one;
    private static int two;
    private static int three;
    private static int four;

    private static final class Worker extends Thread {
        @Override
        public void run() {
            one = 1;
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Worker worker = new Worker();
        worker.start();
        while (worker.isAlive()) {
            Thread.onSpinWait();
        }
        one++;
        Thread state = new Thread(() -> two = 1);
        state.start();
        while (state.getState() != Thread.State.TERMINATED) {
            Thread.onSpinWait();
        }
        two++;
        Thread sleeper = new Thread(() -> {
            try {
                Thread.sleep(60_000);
            } catch (InterruptedException e) {
                three++;
            }
        });
        sleeper.start();
        three = 1;
        sleeper.interrupt();
        sleeper.join();
        Thread parked = new Thread(() -> {
            java.util.concurrent.locks.LockSupport.park();
            four++;
        });
        parked.start();
        while (parked.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        four = 1;
        java.util.concurrent.locks.LockSupport.unpark(parked);
        parked.join(60_000);
        if (one + two + three + four != 8) {
            throw new AssertionError();
        }
    }
}
