package foresee.jvm;

import java.util.List;

/**
 * Whose code is recorded. Where it is left out, accesses of plain fields and elements of arrays are not recorded; what orders threads
 * is, and so is what specifications name. The log says what was left out.
 */
record Filter(List<String> included, List<String> excluded) {
    /** Whether the code of a class is left out. */
    boolean leavesOut(String type) {
        for (String name : excluded) {
            if (isIn(type, name)) {
                Log.partial("accesses in the code of " + name + " were left out (--exclude), on the assumption that it uses no data of several threads");
                return true;
            }
        }
        for (String name : included) {
            if (isIn(type, name)) {
                return false;
            }
        }
        if (!included.isEmpty()) {
            Log.partial("accesses outside of " + String.join(", ", included) + " were left out (--include), on the assumption that other code uses no data of several threads");
        }
        return !included.isEmpty();
    }

    /** Whether a class is the one of that name, is nested in it, or is in the package or one below. */
    private static boolean isIn(String type, String name) {
        return type.startsWith(name) && (type.length() == name.length() || type.charAt(name.length()) == '.' || type.charAt(name.length()) == '$');
    }
}
