/** A controller opens a valve as the water in a tank rises; nothing makes the water wait for it. */
public class Water {
    /** The level of the water, and the opening of the valve. */
    private int level = 20;
    private int opening = 40;

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    void rise() {
        level = 24;
        pause(100);
        level = 27;
        pause(50);
        level = 31;
    }

    void open() {
        opening = 60; // in time, but only because the water was slow
        pause(200);
        opening = 70;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Water water = new Water();
        Thread valve = new Thread(water::open, "valve");
        Thread tank = new Thread(water::rise, "tank");
        valve.start();
        tank.start();
        valve.join();
        tank.join();
        System.out.println("water " + water.level + ", valve " + water.opening);
    }
}
