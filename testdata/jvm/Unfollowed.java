import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/** A field is changed in a way that capture does not follow. */
public class Unfollowed {
    private static final AtomicIntegerFieldUpdater<Unfollowed> COUNT = AtomicIntegerFieldUpdater.newUpdater(Unfollowed.class, "count");
    private volatile int count;

    public static void main(String[] arguments) throws InterruptedException {
        Unfollowed shared = new Unfollowed();
        Thread other = new Thread(() -> COUNT.updateAndGet(shared, count -> count + 1));
        other.start();
        COUNT.updateAndGet(shared, count -> count + 1);
        other.join();
    }
}
