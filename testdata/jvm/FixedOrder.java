/** Each thread starts when the one before has ended. */
public class FixedOrder {
    private static int value;

    public static void main(String[] arguments) throws InterruptedException {
        for (int i = 1; i <= 3; i++) {
            int k = i;
            Thread thread = new Thread(() -> value += k);
            thread.start();
            thread.join();
        }
        if (value != 6) {
            throw new AssertionError();
        }
    }
}
