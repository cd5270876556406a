package foresee.jvm;

import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;

/** The places in the program where something is recorded, and the fields that they access. */
final class Sites {
    /** A field that is not recorded: no thread can see it change, or it is left out. */
    static final int FINAL = -1;

    private static final Unsafe U = Unsafe.getUnsafe();
    private static final int STATIC = 0x8;
    private static final int IS_FINAL = 0x10;
    private static final int IS_VOLATILE = 0x40;

    /** One place. */
    static final class Site {
        final int number;
        private final String owner;
        private final String field;
        private final WeakReference<ClassLoader> loader;
        /** The number of the field; 0 until the first access. */
        volatile int key;
        /** Set before the key. */
        boolean isVolatile;
        boolean isWatched;
        /** Where objects have the field, once that is known; else 0. */
        volatile long offset;
        /** Where they say that only one thread can reach them; 0 where it does not matter, or they do not. Set before the offset. */
        long state;
        /** Where they keep their number, or 0. */
        long tag;
        /** The initialisation that the access comes after, or 0. */
        int type;

        private final String place;
        /** Whether plain accesses are not recorded here. */
        private final boolean isLeftOut;

        Site(int number, String owner, String field, ClassLoader loader, String place, boolean isLeftOut) {
            this.place = place;
            this.isLeftOut = isLeftOut;
            this.number = number;
            this.owner = owner;
            this.field = field;
            this.loader = new WeakReference<>(loader);
        }

        /** The last handle that was used here, what it names, and the site that stands for this one with that field. */
        private volatile WeakReference<Object> handle;
        Object target;
        private Map<Integer, Integer> forKeys;

        boolean handle(Object used) {
            WeakReference<Object> last = handle;
            return last != null && last.refersTo(used) && target != null;
        }

        void remember(Object used, Object named) {
            // Where several handles are used in turn, they are looked up each time.
            if (handle == null) {
                target = named;
                handle = new WeakReference<>(used);
            }
        }

        Class<?> loaded(String name) throws ClassNotFoundException {
            return Class.forName(name, false, loader.get());
        }

        /** The number of this place for accesses of this field: handles may name different ones in turn. */
        synchronized int forKey(int key) {
            if (forKeys == null) {
                forKeys = new HashMap<>();
            }
            return forKeys.computeIfAbsent(key, k -> {
                StringBuilder lines = new StringBuilder();
                Site same = add(owner, field, loader.get(), place, isLeftOut, lines);
                Log.add(lines, "K", same.number, Integer.toString(k));
                Log.flush(lines);
                return same.number;
            });
        }

        /** Finds the field, when the class that declares it must have been loaded. */
        int resolve(Object object) {
            try {
                Field found = Privileged.call(() -> findFor(object));
                if (found == null) {
                    throw new NoSuchFieldException(owner + "." + field);
                }
                isVolatile = found.isVolatile;
                isWatched = found.isWatched;
                type = found.type;
                if (isLeftOut && !isVolatile && !isWatched) {
                    key = FINAL;
                    return key;
                }
                if (found.key != FINAL) {
                    Log.write("K", number, Integer.toString(found.key));
                }
                key = found.key;
            } catch (ReflectiveOperationException | LinkageError e) {
                Log.unordered("the field " + owner + "." + field + " was not found");
                key = FINAL;
            }
            return key;
        }

        /** Where an object has the field. Fails as an access of a field does. */
        @DontInline
        long offset(Object object) {
            if (object == null) {
                throw failed(new NullPointerException("Cannot access field \"" + field.substring(0, field.indexOf(':')) + "\", because its object is null"));
            }
            if (offset == 0) {
                if (key == 0) {
                    resolve(object);
                }
                Class<?> declaring = declaring(object.getClass());
                if (declaring == null) {
                    throw failed(new NoSuchFieldError(owner + "." + field));
                }
                // A specification wants all accesses.
                tag = Shapes.of(ownerAmong(object.getClass())).state();
                state = isWatched || !Log.hasLocals ? 0 : tag;
                String name = field.substring(0, field.indexOf(':'));
                offset = isAmbiguous(declaring, name) ? Privileged.call(() -> offsetIn(declaring, name)) : U.objectFieldOffset(declaring, name);
            }
            return offset;
        }

        private Field findFor(Object object) throws ClassNotFoundException {
            Class<?> start = object != null ? ownerAmong(object.getClass()) : loaded(owner);
            return start == null ? null : Sites.find(start, field);
        }

        /** The class that the access names, among an object's class and those above. */
        private Class<?> ownerAmong(Class<?> type) {
            Class<?> start = type;
            while (start != null && !start.getName().equals(owner)) {
                start = start.getSuperclass();
            }
            return start;
        }

        /** The class that declares the field. */
        private Class<?> declaring(Class<?> type) {
            for (Class<?> c = ownerAmong(type); c != null; c = c.getSuperclass()) {
                if (declares(c, field)) {
                    return c;
                }
            }
            return null;
        }

        /** The place of one of several fields of a name, by its type. */
        private long offsetIn(Class<?> type, String name) {
            for (java.lang.reflect.Field one : type.getDeclaredFields()) {
                if (one.getName().equals(name) && one.getType().descriptorString().equals(field.substring(name.length() + 1))) {
                    return U.objectFieldOffset(one);
                }
            }
            throw new NoSuchFieldError(owner + "." + field);
        }
    }

    /** An access fails where the program made it. */
    private static <T extends Throwable> T failed(T thrown) {
        StackTraceElement[] stack = thrown.getStackTrace();
        int own = 0;
        while (own < stack.length && stack[own].getClassName().startsWith("foresee.jvm.")) {
            own++;
        }
        thrown.setStackTrace(Arrays.copyOfRange(stack, own, stack.length));
        return thrown;
    }

    /** A field: its number, and the number of the initialisation that accesses of it come after. */
    record Field(int key, boolean isVolatile, boolean isWatched, int type) {}

    /** The fields that a class declares, by their names and types. */
    private static final class Fields {
        final Map<String, Field> all = new HashMap<>();
        boolean isComplete;
        /** The number of its initialisation. */
        int type;
        /** The names of its fields that refer to objects. */
        final List<String> references = new ArrayList<>();
        /** Whether its objects have a field for the agent, which those of classes that extend it inherit. */
        boolean hasState;
        /** Names that several fields have, of different types. */
        final Set<String> ambiguous = new HashSet<>();
    }

    private static volatile Site[] sites = new Site[1024];
    private static int count = 1;
    private static int keys;
    private static final Map<ClassLoader, Map<String, Fields>> classes = new WeakHashMap<>();
    private static final ClassLoader BOOT = new ClassLoader(null) {};

    private Sites() {}

    static Site get(int number) {
        return sites[number];
    }

    /** A new place; the caller writes the line. */
    static synchronized Site add(String owner, String field, ClassLoader loader, String place, boolean isLeftOut, StringBuilder lines) {
        if (count == sites.length) {
            sites = Arrays.copyOf(sites, count * 2);
        }
        Site site = new Site(count, owner, field, loader, place, isLeftOut);
        sites[count++] = site;
        Log.add(lines, "S", site.number, place);
        return site;
    }

    /** Notes a field of a class that is about to be loaded. */
    static synchronized void declare(ClassLoader loader, String type, String field, int access, char watched, StringBuilder lines) {
        Fields fields = fields(loader, type);
        fields.all.put(field, field(type, field, access, watched, fields.type, lines));
    }

    /** Notes a class that is about to be loaded. */
    static synchronized void declare(ClassLoader loader, String type, int initialisation, ClassFacts facts) {
        Fields fields = fields(loader, type);
        fields.isComplete = true;
        fields.type = initialisation;
        fields.hasState = facts.hasState();
        Set<String> names = new HashSet<>();
        for (ClassFacts.Field field : facts.fields) {
            if (!names.add(field.name())) {
                fields.ambiguous.add(field.name());
            }
            if ((field.access() & STATIC) == 0 && Escapes.mayBeLocal(field.type())) {
                fields.references.add(field.name());
            }
        }
    }

    /** What the agent keeps in objects of a class. */
    static synchronized Shapes.Shape shape(Class<?> type) {
        Fields fields = known(type);
        if (fields == null || !fields.isComplete || !Collections.disjoint(fields.ambiguous, fields.references)) {
            return Shapes.none();
        }
        Shapes.Shape above = fields.hasState ? Shapes.none() : Shapes.of(type.getSuperclass());
        return fields.hasState || above != Shapes.none() ? Shapes.extended(above, type, fields.references) : Shapes.none();
    }

    private static Fields known(Class<?> type) {
        ClassLoader loader = type.getClassLoader();
        return classes.getOrDefault(loader == null ? BOOT : loader, Map.of()).get(type.getName());
    }

    /** Whether a class declares a field of this name and type. */
    private static synchronized boolean declares(Class<?> type, String field) {
        Fields fields = known(type);
        return fields != null && fields.all.containsKey(field);
    }

    private static synchronized boolean isAmbiguous(Class<?> type, String name) {
        Fields fields = known(type);
        return fields == null || fields.ambiguous.contains(name);
    }

    /** Whether a class was seen before it was loaded. */
    static synchronized boolean isDeclared(Class<?> type) {
        Fields fields = classes.getOrDefault(type.getClassLoader(), Map.of()).get(type.getName());
        return fields != null && fields.isComplete;
    }

    private static Field field(String type, String field, int access, char watched, int initialisation, StringBuilder lines) {
        boolean isVolatile = (access & IS_VOLATILE) != 0;
        int after = (access & STATIC) != 0 ? initialisation : 0;
        if ((access & IS_FINAL) != 0) {
            return new Field(FINAL, false, false, after);
        }
        int key = ++keys;
        String flags = (access & STATIC) != 0 ? "s" : "i";
        Log.add(lines, "F", key, flags + (isVolatile ? "v" : "p") + watched + type + "." + field.substring(0, field.indexOf(':')));
        return new Field(key, isVolatile, watched != '-', after);
    }

    private static Fields fields(ClassLoader loader, String type) {
        // Without lambda expressions, which take their time when a JVM starts.
        ClassLoader key = loader == null ? BOOT : loader;
        Map<String, Fields> all = classes.get(key);
        if (all == null) {
            all = new HashMap<>();
            classes.put(key, all);
        }
        Fields fields = all.get(type);
        if (fields == null) {
            fields = new Fields();
            all.put(type, fields);
        }
        return fields;
    }

    static Field find(Class<?> type, String name, Class<?> value) {
        return find(type, name + ":" + value.descriptorString());
    }

    /** Finds a field in a class, its interfaces and its superclasses. */
    private static synchronized Field find(Class<?> type, String field) {
        Fields here = fields(type.getClassLoader(), type.getName());
        Field found = here.all.get(field);
        if (found != null) {
            return found;
        }
        for (Class<?> up : type.getInterfaces()) {
            if (classes.getOrDefault(up.getClassLoader() == null ? BOOT : up.getClassLoader(), Map.of()).containsKey(up.getName())) {
                found = find(up, field);
                if (found != null) {
                    return found;
                }
            }
        }
        Class<?> up = type.getSuperclass();
        if (here.isComplete) {
            return up == null ? null : find(up, field);
        }
        // A class of the JDK, or one that could not be transformed: as far up as the field may be.
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            try {
                int access = c.getDeclaredField(field.substring(0, field.indexOf(':'))).getModifiers();
                StringBuilder lines = new StringBuilder();
                found = field(c.getName(), field, access, '-', 0, lines);
                Log.flush(lines);
                fields(c.getClassLoader(), c.getName()).all.put(field, found);
                return found;
            } catch (NoSuchFieldException e) {
                // It may be further up.
            }
        }
        return null;
    }
}
