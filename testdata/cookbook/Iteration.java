import java.util.ArrayList;
import java.util.List;

public class Iteration {
    static final List<String> names = new ArrayList<>(List.of("one", "two"));

    static void draw() {
        for (String name : names) {
            System.out.println(name);
        }
    }

    static void add(String name) {
        names.add(name);
    }

    public static void main(String[] arguments) throws InterruptedException {
        boolean right = Boolean.getBoolean("right");
        Thread painter = new Thread(Iteration::draw, "painter");
        painter.start();
        if (right) {
            painter.join();
        } else {
            Thread.sleep(300);
        }
        add("three");
        painter.join();
    }
}
