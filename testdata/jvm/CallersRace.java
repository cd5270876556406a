/** Two threads write a plain field, each by another way. */
public class CallersRace {
    static int last;

    static void set(int value) {
        last = value;
    }

    static void first() {
        set(1);
    }

    static void second() {
        set(2);
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread one = new Thread(() -> first());
        Thread two = new Thread(() -> second());
        one.start();
        two.start();
        one.join();
        two.join();
    }
}
