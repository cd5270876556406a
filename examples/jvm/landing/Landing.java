/** A landing controller: it asks for approval, and lands. Another thread watches the radio. */
public class Landing {
    static boolean landing;
    static boolean approved;
    static boolean radio = true;

    static void control() {
        if (radio) {
            approved = true;
        }
        if (approved) {
            landing = true; // without asking whether the radio is still on
        }
    }

    static void watchRadio() {
        try {
            Thread.sleep(100); // the signal is lost some time later: after the landing, in every test so far
        } catch (InterruptedException e) {
            return;
        }
        radio = false;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread controller = new Thread(Landing::control, "controller");
        Thread watcher = new Thread(Landing::watchRadio, "watcher");
        controller.start();
        watcher.start();
        controller.join();
        watcher.join();
        System.out.println(landing ? "landed" : "still in the air");
    }
}
