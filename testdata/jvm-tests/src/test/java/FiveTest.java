import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class FiveTest {
    @Test
    void adds() {
        assertEquals(4, 2 + 2);
    }

    @Test
    void counts() throws InterruptedException {
        assertTrue(Counter.twice() > 0);
    }
}
