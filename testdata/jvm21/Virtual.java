import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.locks.ReentrantLock;

/** Virtual threads: a counter that they guard, and one that they race on if `racy` is asked for. */
public class Virtual {
    private static final ReentrantLock lock = new ReentrantLock();
    private static int guarded;
    private static int plain;

    /** What was drawn: classes of new kinds, with new instructions, go through the agent too. */
    sealed interface Shape permits Square, Circle {}

    record Square(int side) implements Shape {}

    record Circle(int radius) implements Shape {}

    private static int size(Shape shape) {
        return switch (shape) {
            case Square(int side) when side > 10 -> 10;
            case Square(int side) -> side;
            case Circle(int radius) -> 2 * radius;
        };
    }

    private static void add(boolean isRacy, int size) {
        lock.lock();
        try {
            guarded += size;
        } finally {
            lock.unlock();
        }
        if (isRacy) {
            plain++;
        }
    }

    public static void main(String[] arguments) throws Exception {
        boolean isRacy = arguments.length > 0;
        Thread one = Thread.ofVirtual().name("one").start(() -> add(isRacy, size(new Square(3))));
        Thread two = Thread.startVirtualThread(() -> add(isRacy, size(new Circle(1))));
        one.join();
        two.join();
        try (ExecutorService each = Executors.newVirtualThreadPerTaskExecutor()) {
            for (int i = 0; i < 3; i++) {
                each.submit(() -> add(false, size(new Square(20))));
            }
        }
        System.out.println(guarded);
    }
}
