import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

/** A chart draws its subtitles while another thread adds one, after that in every test so far: the kind of bug of JFreeChart's getLegend. */
public class Legend {
    private final List<String> subtitles = new ArrayList<>(List.of("legend", "source"));

    void draw() {
        Iterator<String> each = subtitles.iterator();
        while (each.hasNext()) {
            System.out.println(each.next());
        }
    }

    void add(String subtitle) {
        subtitles.add(subtitle);
    }

    public static void main(String[] arguments) throws InterruptedException {
        Legend legend = new Legend();
        Thread painter = new Thread(legend::draw, "painter");
        Thread editor = new Thread(() -> {
            try {
                Thread.sleep(200);
            } catch (InterruptedException e) {
                return;
            }
            legend.add("author");
        }, "editor");
        painter.start();
        editor.start();
        painter.join();
        editor.join();
    }
}
