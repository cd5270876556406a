/** A lock of two flags that are tested before they are set: the second thread finds what was there before the first one came. */
public class FlagsWithoutTurn {
    private static volatile boolean isFirst;
    private static volatile boolean isSecond;
    private static int count;

    public static void main(String[] arguments) throws InterruptedException {
        Thread one = new Thread(() -> {
            while (isSecond) {
                Thread.onSpinWait();
            }
            isFirst = true;
            count++;
            isFirst = false;
        });
        Thread two = new Thread(() -> {
            try {
                // Later in every test so far.
                Thread.sleep(300);
            } catch (InterruptedException e) {
                return;
            }
            while (isFirst) {
                Thread.onSpinWait();
            }
            isSecond = true;
            count++;
            isSecond = false;
        });
        one.start();
        two.start();
        one.join();
        two.join();
    }
}
