import java.util.ArrayList;
import java.util.List;

/** One thread adds to a list that another one iterates over. */
public class SharedList {
    public static void main(String[] arguments) throws InterruptedException {
        List<String> list = new ArrayList<>(List.of("a", "b"));
        Thread adder = new Thread(() -> list.add("c"));
        int length = 0;
        for (String text : list) {
            length += text.length();
        }
        adder.start();
        adder.join();
        Thread other = new Thread(() -> list.add("d"));
        other.start();
        for (String text : new String[] {"x"}) {
            length += list.size() + text.length();
        }
        other.join();
        if (length < 5) {
            throw new AssertionError();
        }
    }
}
