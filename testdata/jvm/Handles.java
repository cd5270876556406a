import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/** A field is published through a handle, which capture does not follow. */
public class Handles {
    private static final VarHandle READY;
    private int data;
    private int ready;

    static {
        try {
            READY = MethodHandles.lookup().findVarHandle(Handles.class, "ready", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Handles shared = new Handles();
        Thread reader = new Thread(() -> {
            while ((int) READY.getAcquire(shared) == 0) {
                Thread.onSpinWait();
            }
            shared.data++;
        });
        reader.start();
        shared.data = 1;
        READY.setRelease(shared, 1);
        reader.join();
    }
}
