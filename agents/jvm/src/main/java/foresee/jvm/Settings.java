package foresee.jvm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** What the agent is told: settings with a name and a value, in a file or after the agent's name. */
final class Settings {
    private static final String USAGE = "-javaagent:foresee-jvm.jar=FILE, or =out=FOLDER,exclude=PACKAGE or =to=HOST:PORT and so on";

    Path folder;
    /** The address of the observer, or null, what it wants to be told, and the name of the program there. */
    String observer;
    String token = "";
    String name = "java";
    long limit = Long.MAX_VALUE;
    boolean isAsync;
    boolean hasStacks;
    boolean hasLocals = true;
    /** What specifications name. */
    final List<String> fields = new ArrayList<>();
    /** Fields of the objects of a type. */
    final List<String> objects = new ArrayList<>();
    final List<String> methods = new ArrayList<>();
    /** Whose code is recorded, and whose is not. */
    final List<String> included = new ArrayList<>();
    final List<String> excluded = new ArrayList<>();

    private Settings() {}

    /** Reads the agent's argument: a file with a setting on each line (`name value`), or `name=value,name=value`. */
    static Settings of(String argument) throws IOException {
        if (argument == null || argument.isEmpty()) {
            throw new IllegalArgumentException("the agent needs its settings: " + USAGE);
        }
        Settings settings = new Settings();
        if (argument.indexOf('=') < 0 || Files.exists(Path.of(argument))) {
            if (!Files.isReadable(Path.of(argument)) || Files.isDirectory(Path.of(argument))) {
                throw new IllegalArgumentException("the agent's settings cannot be read: " + argument);
            }
            for (String line : Files.readAllLines(Path.of(argument))) {
                settings.set(line, ' ', argument);
            }
            if (settings.folder != null) {
                settings.folder = Path.of(argument).toAbsolutePath().resolveSibling(settings.folder);
            }
        } else {
            for (String setting : argument.split(",")) {
                settings.set(setting, '=', "-javaagent");
            }
        }
        if (settings.folder == null && settings.observer == null) {
            throw new IllegalArgumentException(argument + ": there is neither `out`, the folder for the log, nor `to`, the address of an observer");
        }
        return settings;
    }

    private void set(String setting, char separator, String where) {
        int at = setting.indexOf(separator);
        String name = at < 0 ? setting : setting.substring(0, at);
        String value = at < 0 ? "" : setting.substring(at + 1);
        if (name.isEmpty()) {
            return;
        }
        if (value.isEmpty()) {
            throw new IllegalArgumentException(where + ": the setting `" + name + "` has no value");
        }
        switch (name) {
            case "out" -> folder = path(value);
            case "to" -> observer = value;
            case "token" -> token = value;
            case "name" -> this.name = value;
            case "limit" -> limit = number(value);
            case "mode" -> isAsync = isAsync(value);
            case "stacks" -> hasStacks = hasStacks(value);
            case "filter" -> hasLocals = hasLocals(value);
            case "field" -> fields.add(value);
            case "object" -> objects.add(value);
            case "method" -> methods.add(value);
            case "include" -> included.add(value);
            case "exclude" -> excluded.add(value);
            default -> throw new IllegalArgumentException(where + ": unknown setting `" + name + "`: there are out, to, token, name, limit, mode, stacks, filter, field, object, method, include, exclude");
        }
    }

    private static Path path(String text) {
        try {
            return Path.of(text);
        } catch (InvalidPathException e) {
            throw new IllegalArgumentException("`" + text + "` is not a path");
        }
    }

    private static boolean isAsync(String mode) {
        return switch (mode) {
            case "async" -> true;
            case "sync" -> false;
            default -> throw new IllegalArgumentException("`" + mode + "` is not a mode: sync or async");
        };
    }

    private static boolean hasStacks(String when) {
        return switch (when) {
            case "on" -> true;
            case "off" -> false;
            default -> throw new IllegalArgumentException("`" + when + "` does not say whether there are call stacks: on or off");
        };
    }

    private static boolean hasLocals(String filter) {
        return switch (filter) {
            case "local" -> true;
            case "none" -> false;
            default -> throw new IllegalArgumentException("`" + filter + "` is not a filter: local or none");
        };
    }

    private static long number(String text) {
        try {
            return Long.parseLong(text);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("`" + text + "` is not a number of bytes");
        }
    }
}
