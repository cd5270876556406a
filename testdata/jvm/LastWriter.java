/** What is read under the lock depends on which thread wrote last. */
public class LastWriter {
    private static int value;

    private static synchronized void set(int to) {
        value = to;
    }

    private static synchronized int get() {
        return value;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread one = new Thread(() -> set(1));
        Thread two = new Thread(() -> set(2));
        one.start();
        two.start();
        one.join();
        two.join();
        System.out.println(get() > 0);
    }
}
