package foresee.jvm;

import java.lang.constant.ClassDesc;
import java.lang.constant.DynamicConstantDesc;
import java.lang.invoke.VarHandle;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;

/** Accesses through variable handles and field updaters, which are accesses of the field or element that they name. */
public final class Handles {
    // What an access does.
    static final int READ = 0;
    static final int WRITE = 1;
    static final int CHANGE = 2;
    /** A compare-and-set, which returns whether it was a change. */
    static final int TRY = 3;

    /** What a handle names: a field, or the elements of arrays. */
    private record Target(Sites.Field field, VarHandle plain, int coordinates) {
        boolean isElement() {
            return field == null;
        }
    }

    /** A handle of which nothing is known. */
    private static final Target UNKNOWN = new Target(null, null, -1);
    private static final Map<Object, Target> targets = Collections.synchronizedMap(new WeakHashMap<>());

    private Handles() {}

    /** A handle or an updater was made for a field of this class. */
    public static void made(Object handle, Class<?> type, String name, Class<?> value) {
        if (handle == null || targets.containsKey(handle)) {
            return;
        }
        Sites.Field field = Sites.find(type, name, value);
        if (field != null) {
            boolean isHandle = handle instanceof VarHandle;
            int coordinates = isHandle ? ((VarHandle) handle).coordinateTypes().size() : 1;
            targets.put(handle, new Target(field, isHandle ? ((VarHandle) handle).withInvokeBehavior() : null, coordinates));
        }
    }

    public static void made(Object updater, Class<?> type, String name) {
        made(updater, type, name, updater instanceof AtomicIntegerFieldUpdater ? int.class : long.class);
    }

    private static Target target(Object handle, Sites.Site site) {
        Target known = site.handle(handle) ? (Target) site.target : targets.get(handle);
        if (known == null) {
            known = handle instanceof VarHandle described ? Privileged.call(() -> describe(described, site)) : UNKNOWN;
            targets.put(handle, known);
        }
        site.remember(handle, known);
        return known;
    }

    private static Target describe(VarHandle handle, Sites.Site site) {
        try {
            VarHandle plain = handle.withInvokeBehavior();
            int coordinates = handle.coordinateTypes().size();
            if (coordinates == 2) {
                // Views of arrays and buffers as other types have no description.
                boolean isElement = handle.describeConstable().isPresent() && handle.coordinateTypes().get(0).isArray();
                return isElement ? new Target(null, plain, 2) : UNKNOWN;
            }
            DynamicConstantDesc<?> description = handle.describeConstable().orElse(null);
            if (description == null) {
                return UNKNOWN;
            }
            String owner = ((ClassDesc) description.bootstrapArgsList().get(0)).descriptorString();
            Class<?> type = coordinates == 1 ? handle.coordinateTypes().get(0) : site.loaded(owner.substring(1, owner.length() - 1).replace('/', '.'));
            Sites.Field field = Sites.find(type, description.constantName(), handle.varType());
            return field == null ? UNKNOWN : new Target(field, plain, coordinates);
        } catch (ReflectiveOperationException | LinkageError e) {
            return UNKNOWN;
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static Object value(Object handle, Object holder, int index, Target target) {
        if (handle instanceof AtomicIntegerFieldUpdater updater) {
            return updater.get(holder);
        }
        if (handle instanceof AtomicLongFieldUpdater updater) {
            return updater.get(holder);
        }
        if (handle instanceof AtomicReferenceFieldUpdater updater) {
            return updater.get(holder);
        }
        return switch (target.coordinates) {
            case 0 -> (Object) target.plain.getVolatile();
            case 1 -> (Object) target.plain.getVolatile(holder);
            default -> (Object) target.plain.getVolatile(holder, index);
        };
    }

    /** Before an access. It is matched by one of the methods below. */
    public static void begin(Object handle, Object holder, int index, boolean isPlain, int site) {
        if (!Log.isOn || handle == null) {
            return;
        }
        Sites.Site place = Sites.get(site);
        Target target = target(handle, place);
        if (target == UNKNOWN) {
            // What is read and written without order by way of views of arrays shows in the values of their elements.
            if (!isPlain) {
                Log.unordered("the program calls a variable handle that is not followed: " + handle);
            }
            return;
        }
        Sites.Field field = target.field;
        if (field != null && field.type() != 0) {
            Rt.uses(field.type());
        }
        if (field != null && field.key() == Sites.FINAL) {
            return;
        }
        try {
            // Whatever must be linked or fails, does so now.
            value(handle, holder, index, target);
        } catch (Throwable e) {
            return;
        }
        ThreadLog log = ThreadLog.current();
        boolean isBegun;
        if (target.isElement()) {
            long id = Ids.of(holder, log);
            isBegun = log.begin(Stripes.of(id, index), id, index, site, !isPlain);
        } else {
            long id = target.coordinates == 0 ? 0 : Ids.of(holder, log);
            int stripe = field.isWatched() ? Stripes.WATCHED : Stripes.of(id, field.key());
            isBegun = log.begin(stripe, id, 0, place.forKey(field.key()), !isPlain || field.isVolatile());
        }
        if (isBegun) {
            log.found = value(handle, holder, index, target);
        }
    }

    public static void end(Object handle, Object holder, int index, int kind, int site) {
        ThreadLog log = ThreadLog.current();
        if (!log.isInside()) {
            return;
        }
        Object found = log.found;
        log.found = null;
        switch (kind) {
            case READ -> log.read(found);
            case WRITE -> log.wrote(value(handle, holder, index, target(handle, Sites.get(site))));
            default -> log.changed(found, value(handle, holder, index, target(handle, Sites.get(site))));
        }
    }

    public static void tried(boolean isChanged, Object handle, Object holder, int index, int site) {
        end(handle, holder, index, isChanged ? CHANGE : READ, site);
    }

    public static void failed(Throwable thrown, int site, Object handle, Object holder, int index) {
        end(handle, holder, index, READ, site);
    }
}
