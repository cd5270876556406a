public class Range {
    private int low = 0, high = 10;

    synchronized void setLow(int value) {
        low = value;
    }

    synchronized void setHigh(int value) {
        high = value;
    }

    public static void main(String[] arguments) throws InterruptedException {
        Range range = new Range();
        Thread top = new Thread(() -> range.setHigh(20), "top");
        Thread bottom = new Thread(() -> range.setLow(15), "bottom");
        top.start();
        if (Boolean.getBoolean("right")) {
            top.join();
        } else {
            Thread.sleep(300);
        }
        bottom.start();
        top.join();
        bottom.join();
    }
}
