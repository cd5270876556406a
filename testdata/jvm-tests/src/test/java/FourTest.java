import static org.junit.Assert.assertTrue;

import org.junit.Test;

public class FourTest {
    @Test
    public void countsToo() throws InterruptedException {
        assertTrue(Counter.twice() > 0);
    }
}
