/** The same with a flag that is not volatile. */
public class PlainFlag {
    private int data;
    private boolean ready;

    public static void main(String[] arguments) throws InterruptedException {
        PlainFlag shared = new PlainFlag();
        Thread reader = new Thread(() -> {
            if (shared.ready && shared.data != 42) {
                throw new AssertionError();
            }
        });
        reader.start();
        shared.data = 42;
        shared.ready = true;
        reader.join();
    }
}
