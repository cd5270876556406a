import java.util.concurrent.CopyOnWriteArrayList;

public class Listener {
    static final CopyOnWriteArrayList<Listener> all = new CopyOnWriteArrayList<>();

    void onEvent() {
        System.out.println("event");
    }

    static void register(Listener listener) {
        all.add(listener);
    }

    static void unregister(Listener listener) {
        all.remove(listener);
    }

    static void fire() {
        for (Listener listener : all) {
            listener.onEvent();
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Listener listener = new Listener();
        register(listener);
        Thread source = new Thread(Listener::fire, "source");
        source.start();
        if (Boolean.getBoolean("right")) {
            source.join();
        } else {
            Thread.sleep(300);
        }
        unregister(listener);
        source.join();
    }
}
