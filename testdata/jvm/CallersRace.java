/** Two threads add to a plain counter, each by another way. */
public class CallersRace {
    static int count;

    static void add() {
        count++;
    }

    static void first() {
        add();
    }

    static void second() {
        add();
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
