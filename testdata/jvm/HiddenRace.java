/** A race that a critical section on an unrelated lock hides from tools that follow the order of locks in the run. */
public class HiddenRace {
    private static int data;
    private static boolean isFirstDone;
    private static boolean isSecondDone;

    private static synchronized void finishFirst() {
        isFirstDone = true;
    }

    private static synchronized void beginSecond() {
        isSecondDone = true;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread one = new Thread(() -> {
            data = 1;
            finishFirst();
        });
        Thread two = new Thread(() -> {
            try {
                // Later in every test so far.
                Thread.sleep(300);
            } catch (InterruptedException e) {
                return;
            }
            beginSecond();
            data = 2;
        });
        one.start();
        two.start();
        one.join();
        two.join();
        System.out.println(data > 0 && isFirstDone && isSecondDone);
    }
}
