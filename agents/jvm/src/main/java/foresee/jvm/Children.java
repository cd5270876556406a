package foresee.jvm;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Brings the agent into the JVMs that the program starts. */
public final class Children {
    private static final String VARIABLE = "JAVA_TOOL_OPTIONS";
    /** What a JVM gets beside the agent, as from `foresee run`. */
    private static final List<String> BESIDE = List.of("-Xshare:off", "-XX:CompileCommand=quiet", "-XX:CompileCommand=dontinline,*::$fs$*",
            "-XX:Tier4InvocationThreshold=150000", "-XX:Tier4MinInvocationThreshold=18000", "-XX:Tier4CompileThreshold=450000", "-XX:Tier4BackEdgeThreshold=1200000",
            "-XX:CompileCommand=CompileThresholdScaling,foresee.jvm.Accesses::*,0.03", "-XX:CompileCommand=CompileThresholdScaling,foresee.jvm.ThreadLog::*,0.03",
            "-XX:CompileCommand=CompileThresholdScaling,foresee.jvm.Rt::*,0.03", "-XX:CompileCommand=CompileThresholdScaling,foresee.jvm.Ids::*,0.03");
    private static String agent;
    private static String option;

    private Children() {}

    static void prepare(String jar, String configuration) {
        agent = "-javaagent:" + jar;
        option = agent + "=" + configuration;
    }

    /** The command that is run in place of this one: a Java launcher gets the agent as an argument. */
    public static List<String> command(List<String> command) {
        if (!Log.isOn || !isJava(command)) {
            return command;
        }
        for (String word : command) {
            if (word != null && word.startsWith(agent)) {
                return command;
            }
        }
        List<String> with = new ArrayList<>(command);
        with.add(1, option);
        with.addAll(1, BESIDE);
        return with;
    }

    private static boolean isJava(List<String> command) {
        String first = command.isEmpty() ? null : command.get(0);
        return first != null && (first.equals("java") || first.endsWith("/java"));
    }

    /** Before a process is started. Commands other than Java may start it, too. */
    public static void starting(ProcessBuilder builder) {
        if (!Log.isOn || isJava(builder.command())) {
            return;
        }
        if (option.chars().anyMatch(Character::isWhitespace)) {
            // There is no way to write that in the variable.
            Log.partial("JVMs that the program starts by way of other commands are not captured, because the agent's path has a space in it");
            return;
        }
        Map<String, String> environment = builder.environment();
        String options = environment.get(VARIABLE);
        if (options == null || !options.contains(agent)) {
            environment.put(VARIABLE, (options == null ? "" : options + " ") + String.join(" ", BESIDE) + " " + option);
        }
    }
}
