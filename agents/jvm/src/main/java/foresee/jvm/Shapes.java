package foresee.jvm;

import java.util.Arrays;
import java.util.List;
import jdk.internal.misc.Unsafe;

/**
 * What the agent keeps in objects of the program: classes that extend {@code Object} itself get a field for it. Others, and arrays,
 * have an entry in a table.
 *
 * <p>The field holds nothing at first; the log of a thread, as long as only that thread can reach the object; {@link Shared}, once
 * others can; and a {@link Tag} when a record needs the object's number. A copy by {@code clone} gets what the field held: a tag
 * names its object, and the others are as true of the copy.
 */
final class Shapes {
    static final String FIELD = "$fs$state";

    private static final Unsafe U = Unsafe.getUnsafe();
    private static final Shape NONE = new Shape(0, null, false);
    private static final Shape ARRAY = new Shape(0, null, true);

    /** The place of the field in objects of a class, or 0; the places of their references to objects; whether they are arrays. */
    record Shape(long state, long[] references, boolean isArray) {}

    /** The number of an object. */
    record Tag(Object object, long id) {}

    /** The object with which others were shared, so that whoever reaches one of them comes after that. */
    record Shared(long with) {}

    private static final ClassValue<Shape> SHAPES = new ClassValue<>() {
        @Override
        protected Shape computeValue(Class<?> type) {
            if (type.isArray()) {
                return ARRAY;
            }
            return type.getClassLoader() == null || type.isHidden() ? NONE : Sites.shape(type);
        }
    };

    private Shapes() {}

    static Shape of(Object object) {
        return SHAPES.get(object.getClass());
    }

    static Shape of(Class<?> type) {
        return SHAPES.get(type);
    }

    static Shape none() {
        return NONE;
    }

    /** The shape of a class whose superclass has this one, with further references. */
    static Shape extended(Shape above, Class<?> type, List<String> references) {
        long[] inherited = above == NONE ? new long[0] : above.references;
        long[] all = Arrays.copyOf(inherited, inherited.length + references.size());
        for (int i = 0; i < references.size(); i++) {
            all[inherited.length + i] = U.objectFieldOffset(type, references.get(i));
        }
        return new Shape(above == NONE ? U.objectFieldOffset(type, FIELD) : above.state, all, false);
    }
}
