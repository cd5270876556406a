/** Two threads use a class whose initialiser one of them runs. */
public class LazyHolder {
    private static final class Holder {
        static final Holder INSTANCE = new Holder();
        static int uses = 3;
        int value;

        Holder() {
            value = 4;
        }

        static Holder get() {
            return INSTANCE;
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Runnable look = () -> {
            if (Holder.get().value + Holder.uses != 7) {
                throw new AssertionError();
            }
        };
        Thread one = new Thread(look);
        Thread two = new Thread(look);
        one.start();
        two.start();
        one.join();
        two.join();
    }
}
