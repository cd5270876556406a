/**
 * The runs that two papers show, step by step: the water-level controller and the landing controller of Sen, Roşu and Agha, and
 * Roşu and Sen's x, y, z. Nothing in the captured program orders the threads but what they share: whose turn it is, is kept in
 * a system property, which capture does not follow.
 */
public class PaperRuns {
    static int w = 20;
    static int v = 40;
    static int x = -1;
    static int y;
    static int z;
    static int landing;
    static int approved;
    static int radio = 1;

    /** Waits until it is this turn, does the step, and gives the turn on. */
    private static void turn(int number, Runnable step) {
        while (Integer.getInteger("turn", 1) != number) {
            Thread.onSpinWait();
        }
        step.run();
        System.setProperty("turn", Integer.toString(number + 1));
    }

    private static void valve() {
        turn(2, () -> {
            if (w > 18) {
                v += 10;
            }
        });
        turn(4, () -> v += 10);
        turn(6, () -> {
            if (w > 18) {
                v += 10;
            }
        });
    }

    private static void tank() {
        turn(1, () -> w = 24);
        turn(3, () -> w = 27);
        turn(5, () -> w = 31);
    }

    private static void first() {
        turn(1, () -> x++);
        turn(3, () -> y = x + 1);
    }

    private static void second() {
        turn(2, () -> z = x + 1);
        turn(4, () -> x++);
    }

    private static void lander() {
        turn(2, () -> {
            if (radio == 1) {
                approved = 1;
            }
        });
        turn(3, () -> {
            if (approved == 1) {
                landing = 1;
            }
        });
    }

    private static void watcher() {
        turn(1, () -> {
            if (radio == 0) {
                throw new IllegalStateException();
            }
        });
        turn(4, () -> radio = 0);
    }

    public static void main(String[] arguments) throws InterruptedException {
        Runnable[] both = switch (arguments[0]) {
            case "water" -> new Runnable[] {PaperRuns::valve, PaperRuns::tank};
            case "xyz" -> new Runnable[] {PaperRuns::first, PaperRuns::second};
            default -> new Runnable[] {PaperRuns::lander, PaperRuns::watcher};
        };
        Thread one = new Thread(both[0], "T1");
        Thread two = new Thread(both[1], "T2");
        one.start();
        two.start();
        one.join();
        two.join();
    }
}
