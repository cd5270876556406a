import java.util.ArrayList;
import java.util.List;

/** A database player adds to its inputs and counts them, while another thread clears both: Ang and Mathur's DBPlayer. */
public class Player {
    /** The inputs of a player. */
    static final class Inputs {
        private final List<String> list = new ArrayList<>();

        void add(String input) {
            list.add(input);
        }

        void clear() {
            list.clear();
        }
    }

    private final Inputs inputs = new Inputs();
    private int count;

    synchronized void reset() {
        inputs.clear();
        count = 0;
    }

    void play() { // not synchronized, though it should be
        inputs.add("token");
        count = 1;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Player player = new Player();
        Thread reset = new Thread(player::reset, "t1");
        Thread play = new Thread(() -> {
            try {
                Thread.sleep(200);
            } catch (InterruptedException e) {
                return;
            }
            player.play();
        }, "t2");
        reset.start();
        play.start();
        reset.join();
        play.join();
        System.out.println(player.count + " of " + player.inputs.list.size());
    }
}
