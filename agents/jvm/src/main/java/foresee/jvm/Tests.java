package foresee.jvm;

import java.lang.reflect.Method;
import java.util.Optional;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

/**
 * Marks where each test of JUnit 4, of the JUnit platform (JUnit 5) and of TestNG begins and ends. Each of them notifies
 * its listeners in one place, where a call is inserted. The name of the test is read by reflection, because the agent is
 * compiled without any of them.
 */
public final class Tests {
    private static final String NOTIFIER = "org/junit/runner/notification/RunNotifier";
    private static final String PLATFORM = "org/junit/platform/launcher/core/ExecutionListenerAdapter";
    private static final String TESTNG = "org/testng/internal/TestListenerHelper";

    /** What TestNG calls a test that has been started. */
    private static final int STARTED = 16;

    private Tests() {}

    /** The code of a method, with the call if it is one of those places. */
    static MethodVisitor of(MethodVisitor next, String type, String name, String descriptor) {
        String called = switch (type) {
            case NOTIFIER -> switch (name) {
                case "fireTestStarted" -> "begun";
                case "fireTestFinished" -> "ended";
                default -> null;
            };
            case PLATFORM -> switch (name) {
                case "executionStarted" -> "begun";
                case "executionFinished" -> "ended";
                default -> null;
            };
            case TESTNG -> name.equals("runTestListeners") ? "listened" : null;
            default -> null;
        };
        if (called == null || !descriptor.startsWith("(L")) {
            return next;
        }
        int argument = type.equals(TESTNG) ? 0 : 1;
        return new MethodVisitor(Opcodes.ASM9, next) {
            @Override
            public void visitCode() {
                super.visitCode();
                super.visitVarInsn(Opcodes.ALOAD, argument);
                super.visitMethodInsn(Opcodes.INVOKESTATIC, "foresee/jvm/Tests", called, "(Ljava/lang/Object;)V", false);
            }
        };
    }

    public static void begun(Object test) {
        mark(Op.TEST_BEGIN, test);
    }

    public static void ended(Object test) {
        mark(Op.TEST_END, test);
    }

    /** TestNG has one method for all that can happen to a test. */
    public static void listened(Object result) {
        Object status = get(result, "getStatus");
        mark(Integer.valueOf(STARTED).equals(status) ? Op.TEST_BEGIN : Op.TEST_END, result);
    }

    private static void mark(int op, Object test) {
        if (Log.isOn && test != null) {
            String name = name(test);
            if (name != null) {
                ThreadLog.current().note(op, Stripes.WATCHED, 0, Methods.number(name), 0);
            }
        }
    }

    /** The name of a test, or null of a group of tests. */
    private static String name(Object test) {
        if (test.getClass().getName().equals("org.junit.runner.Description")) {
            Object method = get(test, "getMethodName");
            return method == null ? String.valueOf(get(test, "getDisplayName")) : get(test, "getClassName") + "." + method;
        }
        Object invoked = get(test, "getMethod");
        if (invoked != null && get(invoked, "getQualifiedName") instanceof String qualified) {
            return qualified;
        }
        if (!Boolean.TRUE.equals(get(test, "isTest"))) {
            return null;
        }
        String display = String.valueOf(get(test, "getDisplayName"));
        if (get(test, "getSource") instanceof Optional<?> source && source.isPresent() && get(source.get(), "getMethodName") != null) {
            String method = String.valueOf(get(source.get(), "getMethodName"));
            String plain = get(source.get(), "getClassName") + "." + method;
            // Repeated and parameterised tests differ in what they are called.
            return display.equals(method) || display.startsWith(method + "(") ? plain : plain + " " + display;
        }
        return display;
    }

    private static Object get(Object of, String name) {
        for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
            Object found = get(type, of, name);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** Asks by the class or an interface of it, whichever is public. */
    private static Object get(Class<?> type, Object of, String name) {
        try {
            Method method = type.getMethod(name);
            method.setAccessible(true);
            return method.invoke(of);
        } catch (ReflectiveOperationException | RuntimeException e) {
            return null;
        }
    }
}
