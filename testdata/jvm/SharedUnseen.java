import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/** The JDK gets an object from a method that does not look as if the JDK called it, and gives it to another thread. */
public class SharedUnseen {
    static class Box {
        int value;
    }

    static class Maker {
        public Object get() {
            Box box = new Box();
            box.value = 1;
            return box;
        }
    }

    /** Inherits the method that the JDK calls. */
    static final class Supplying extends Maker implements Supplier<Object> {}

    public static void main(String[] arguments) {
        Box box = (Box) CompletableFuture.supplyAsync(new Supplying()).join();
        System.out.println(box.value);
    }
}
