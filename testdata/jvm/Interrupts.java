/** One thread records as fast as it can while another interrupts it; every interrupt arrives. */
public class Interrupts {
    static volatile int steps;

    public static void main(String[] arguments) throws Exception {
        Thread main = Thread.currentThread();
        for (int i = 0; i < 120; i++) {
            int after = i % 7;
            Thread other = new Thread(() -> {
                for (int k = 0; k < after * 1000; k++) {
                    Thread.onSpinWait();
                }
                main.interrupt();
            });
            other.start();
            long begin = System.nanoTime();
            while (!Thread.interrupted()) {
                steps++;
                if (System.nanoTime() - begin > 30_000_000_000L) {
                    System.out.println("the interrupt " + i + " was lost");
                    System.exit(1);
                }
            }
            other.join();
        }
    }
}
