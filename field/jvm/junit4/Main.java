import com.google.common.collect.testing.TestsForQueuesInJavaUtil;
import com.google.common.collect.testing.TestsForSetsInJavaUtil;
import org.junit.experimental.ParallelComputer;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.RunWith;
import org.junit.runners.AllTests;

/** JUnit 4 runs two suites of Guava's test library at once. */
public class Main {
    @RunWith(AllTests.class)
    public static class Queues {
        public static junit.framework.Test suite() {
            return new TestsForQueuesInJavaUtil().testsForArrayDeque();
        }
    }

    @RunWith(AllTests.class)
    public static class Sets {
        public static junit.framework.Test suite() {
            return new TestsForSetsInJavaUtil().testsForHashSet();
        }
    }

    public static void main(String[] arguments) {
        Result result = JUnitCore.runClasses(ParallelComputer.classes(), Queues.class, Sets.class);
        System.out.println(result.getRunCount() + " tests, " + result.getFailureCount() + " failures");
        System.exit(result.wasSuccessful() ? 0 : 1);
    }
}
