/** A balance is read and written in one critical section. */
public class WholeUpdate {
    private int balance;

    synchronized void deposit(int amount) {
        balance = balance + amount;
    }

    public static void main(String[] arguments) throws InterruptedException {
        WholeUpdate account = new WholeUpdate();
        Thread one = new Thread(() -> account.deposit(1));
        Thread two = new Thread(() -> account.deposit(2));
        one.start();
        two.start();
        one.join();
        two.join();
        synchronized (account) {
            if (account.balance != 3) {
                throw new AssertionError();
            }
        }
    }
}
