import org.jfree.chart.JFreeChart;
import org.jfree.chart.plot.XYPlot;
import org.jfree.chart.title.TextTitle;

/** One thread looks for the legend of a JFreeChart chart, another adds a subtitle to it: JFreeChart locks nothing. */
public class Subtitles {
    public static void main(String[] arguments) throws InterruptedException {
        System.setProperty("java.awt.headless", "true");
        JFreeChart chart = new JFreeChart("chart", JFreeChart.DEFAULT_TITLE_FONT, new XYPlot(), false);
        chart.addSubtitle(new TextTitle("source"));
        chart.addSubtitle(new TextTitle("date"));
        TextTitle author = new TextTitle("author");
        Thread painter = new Thread(() -> System.out.println("legend: " + chart.getLegend()), "painter");
        Thread editor = new Thread(() -> {
            pause(500);
            chart.addSubtitle(author);
        }, "editor");
        painter.start();
        editor.start();
        painter.join();
        editor.join();
        System.out.println(chart.getSubtitleCount() + " subtitles");
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
