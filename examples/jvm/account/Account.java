/** An account under a lock: what an audit reads depends on which transfer came first. */
public class Account {
    private int balance;

    synchronized void set(int to) {
        balance = to;
    }

    synchronized int get() {
        return balance;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Account account = new Account();
        account.set(100);
        Thread deposit = new Thread(() -> account.set(150), "deposit");
        Thread audit = new Thread(() -> System.out.println(account.get() >= 100 ? "solvent" : "broke"), "audit");
        deposit.start();
        audit.start();
        deposit.join();
        audit.join();
    }
}
