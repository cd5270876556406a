package foresee.jvm;

import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The log of this process: a folder with one file of records per thread, and one file of names.
 *
 * <p>A name is written before the first record that uses it, by a system call, so a killed process leaves every name that its
 * records need.
 */
final class Log {
    /** The version of the records and names, which the reader checks. */
    private static final int VERSION = 5;

    /** Whether events are recorded. */
    static volatile boolean isOn;
    /** Whether an access and its place in the order are not one step: other threads may come in between. */
    static boolean isAsync;
    /** Whether call stacks are recorded. */
    static boolean hasStacks;
    /** Whether accesses of objects that only one thread can reach are left out. */
    static boolean hasLocals;
    /** Whether an observer gets the log while the program runs. */
    static boolean isSent;
    /** The most bytes of records. */
    static long limit = Long.MAX_VALUE;

    static Path folder;
    private static FileOutputStream names;
    private static final AtomicLong used = new AtomicLong();
    private static final AtomicInteger threads = new AtomicInteger();
    private static final Map<String, Integer> told = new HashMap<>();

    private static final ClassValue<Integer> CLASSES = new ClassValue<>() {
        private final AtomicInteger count = new AtomicInteger();

        @Override
        protected Integer computeValue(Class<?> type) {
            int number = count.incrementAndGet();
            write("C", number, type.getTypeName());
            return number;
        }
    };

    private Log() {}

    static void open(Path parent) throws IOException {
        folder = parent.resolve(process() + ".jvm");
        Files.createDirectories(folder);
        names = new FileOutputStream(folder.resolve("names").toFile());
        write("V", VERSION, System.getProperty("java.version"));
        if (isAsync) {
            write("A", 0, "");
        }
        if (hasStacks) {
            write("P", 0, "");
        }
        if (hasLocals) {
            write("Z", 0, "");
        }
    }

    /** The number of this process. The JDK's own way begins with a pool of threads. */
    private static String process() {
        try {
            return Files.readSymbolicLink(Path.of("/proc/self")).toString();
        } catch (IOException e) {
            return Long.toString(ProcessHandle.current().pid());
        }
    }

    /** The number of a class that the log has named. */
    static int number(Class<?> type) {
        return CLASSES.get(type);
    }

    static int newThread() {
        return threads.incrementAndGet();
    }

    /** Whether this many more bytes of records are allowed; if not, recording ends. */
    static boolean mayTake(long bytes) {
        if (used.addAndGet(bytes) <= limit) {
            return true;
        }
        if (isOn) {
            isOn = false;
            write("L", limit, "");
        }
        return false;
    }

    /** Writes one name: what it is, its number and its text. */
    static void write(String kind, long number, String text) {
        write(new StringBuilder(), kind, number, text);
    }

    /** Writes what was collected, and one more name. */
    static void write(StringBuilder line, String kind, long number, String text) {
        add(line, kind, number, text);
        flush(line);
    }

    static void add(StringBuilder line, String kind, long number, String text) {
        line.append(kind).append('\t').append(number).append('\t');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            switch (c) {
                case '\\' -> line.append("\\\\");
                case '\n' -> line.append("\\n");
                case '\t' -> line.append("\\t");
                case '\r' -> line.append("\\r");
                default -> line.append(c);
            }
        }
        line.append('\n');
    }

    static void flush(CharSequence lines) {
        byte[] bytes = lines.toString().getBytes(StandardCharsets.UTF_8);
        synchronized (Log.class) {
            try {
                names.write(bytes);
            } catch (IOException e) {
                // Records are useless without names; the missing end shows the reader that they are
                // incomplete.
                isOn = false;
            }
        }
    }

    /** Says, once, why the answer cannot be complete. */
    static void partial(String reason) {
        once("X", reason);
    }

    /** Says, once, why the order of events is not known well enough to predict others. */
    static void unordered(String reason) {
        once("U", reason);
    }

    private static void once(String kind, String reason) {
        synchronized (told) {
            if (told.merge(kind + reason, 1, Integer::sum) > 1) {
                return;
            }
        }
        write(kind, 0, reason);
    }

    /** Says that the JVM was shut down in an orderly way. */
    static void end() {
        write("E", 0, "");
    }
}
