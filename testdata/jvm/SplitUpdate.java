/** A balance is read in one critical section and written in another. */
public class SplitUpdate {
    private int balance;

    private synchronized int get() {
        return balance;
    }

    private synchronized void set(int value) {
        balance = value;
    }

    void deposit(int amount) {
        set(get() + amount);
    }

    public static void main(String[] arguments) throws InterruptedException {
        SplitUpdate account = new SplitUpdate();
        Thread one = new Thread(() -> account.deposit(1));
        Thread two = new Thread(() -> {
            try {
                // Later in every test so far.
                Thread.sleep(200);
            } catch (InterruptedException e) {
                return;
            }
            account.set(5);
        });
        one.start();
        two.start();
        one.join();
        two.join();
    }
}
