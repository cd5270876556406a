import org.jfree.chart.plot.XYPlot;
import org.jfree.data.xy.DefaultXYDataset;

/** One thread asks a JFreeChart plot for the index of a dataset, another sets one: the plot iterates over a map without a lock. */
public class Datasets {
    public static void main(String[] arguments) throws InterruptedException {
        System.setProperty("java.awt.headless", "true");
        XYPlot plot = new XYPlot();
        plot.setDataset(0, new DefaultXYDataset());
        plot.setDataset(1, new DefaultXYDataset());
        DefaultXYDataset wanted = new DefaultXYDataset();
        Thread reader = new Thread(() -> System.out.println("index " + plot.indexOf(wanted)), "reader");
        Thread writer = new Thread(() -> {
            pause(500);
            plot.setDataset(2, wanted);
        }, "writer");
        reader.start();
        writer.start();
        reader.join();
        writer.join();
        System.out.println(plot.getDatasetCount() + " datasets");
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
