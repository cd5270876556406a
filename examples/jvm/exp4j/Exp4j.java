import java.util.Set;
import net.objecthunter.exp4j.ExpressionBuilder;

/** Two threads declare the variables of one expression of exp4j, one after the other by luck. */
public class Exp4j {
    public static void main(String[] arguments) throws InterruptedException {
        ExpressionBuilder builder = new ExpressionBuilder("3 * sin(y) - 2 / (x - 2)");
        Thread many = new Thread(() -> builder.variables(Set.of("x", "z")), "many");
        Thread one = new Thread(() -> {
            pause(300);
            builder.variable("y");
        }, "one");
        many.start();
        one.start();
        many.join();
        one.join();
        System.out.println(builder.build().setVariable("x", 2.3).setVariable("y", 3.14).evaluate());
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
