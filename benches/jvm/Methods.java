/** Methods that a specification names, with much in between that it does not care about. */
public class Methods {
    private int opened;

    synchronized void open() {
        opened++;
    }

    synchronized void close() {
        opened--;
    }

    private static double compute(int seed) {
        double x = seed;
        for (int i = 0; i < 3000; i++) {
            x = Math.sqrt(x * x + i) - x / 3;
        }
        return x;
    }

    public static void main(String[] arguments) throws InterruptedException {
        int rounds = Integer.parseInt(arguments[0]);
        Methods shared = new Methods();
        Thread[] threads = new Thread[2];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int k = 0; k < rounds; k++) {
                    shared.open();
                    if (compute(k) == 0.5) {
                        throw new AssertionError();
                    }
                    shared.close();
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
