package foresee.jvm;

import java.util.HashMap;
import java.util.Map;

/** The methods that specifications name. */
final class Methods {
    private static final Map<String, Integer> numbers = new HashMap<>();

    private Methods() {}

    static synchronized int number(String full) {
        return numbers.computeIfAbsent(full, name -> {
            int number = numbers.size() + 1;
            Log.write("M", number, name);
            return number;
        });
    }
}
