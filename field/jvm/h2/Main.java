import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Four threads insert into and read from one table of an H2 database in memory. */
public class Main {
    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:h2:mem:field;DB_CLOSE_DELAY=-1";
        try (Connection first = DriverManager.getConnection(url); Statement statement = first.createStatement()) {
            statement.execute("create table item(id int primary key, owner int, amount int)");
        }
        Thread[] threads = new Thread[4];
        for (int t = 0; t < threads.length; t++) {
            int owner = t;
            threads[t] = new Thread(() -> work(url, owner), "client " + t);
            threads[t].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        try (Connection last = DriverManager.getConnection(url); Statement statement = last.createStatement();
                ResultSet all = statement.executeQuery("select count(*), sum(amount) from item")) {
            all.next();
            System.out.println(all.getInt(1) + " rows, " + all.getInt(2) + " in all");
        }
    }

    private static void work(String url, int owner) {
        try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
            for (int i = 0; i < 50; i++) {
                statement.execute("insert into item values(" + (owner * 1000 + i) + ", " + owner + ", " + i + ")");
                try (ResultSet sum = statement.executeQuery("select sum(amount) from item where owner = " + owner)) {
                    sum.next();
                }
            }
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }
}
