import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Statement;

/** Four threads insert and query rows of a database in memory (H2). */
public class Database {
    private static final String URL = "jdbc:h2:mem:bench;DB_CLOSE_DELAY=-1";

    private static void use(int number, int rows) throws Exception {
        try (Connection connection = DriverManager.getConnection(URL);
                PreparedStatement insert = connection.prepareStatement("INSERT INTO account VALUES (?, ?, ?)");
                PreparedStatement query = connection.prepareStatement("SELECT SUM(balance) FROM account WHERE owner = ? AND id > ?")) {
            for (int i = 0; i < rows; i++) {
                insert.setInt(1, number * rows + i);
                insert.setInt(2, number);
                insert.setInt(3, i);
                insert.executeUpdate();
                if (i % 10 == 0) {
                    query.setInt(1, number);
                    query.setInt(2, number * rows + i - 20);
                    try (ResultSet result = query.executeQuery()) {
                        result.next();
                    }
                }
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        int rows = Integer.parseInt(arguments[0]);
        try (Connection connection = DriverManager.getConnection(URL); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE account (id INT PRIMARY KEY, owner INT, balance INT)");
        }
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            int number = i;
            threads[i] = new Thread(() -> {
                try {
                    use(number, rows);
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
