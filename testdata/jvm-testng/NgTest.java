import org.testng.Assert;
import org.testng.annotations.Test;

public class NgTest {
    private int count;

    @Test
    public void counts() throws InterruptedException {
        Thread one = new Thread(() -> count++);
        Thread two = new Thread(() -> count++);
        one.start();
        two.start();
        one.join();
        two.join();
        Assert.assertTrue(count > 0);
    }
}
