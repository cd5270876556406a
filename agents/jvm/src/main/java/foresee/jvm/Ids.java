package foresee.jvm;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Numbers of objects, which are unique for the life of the process and keep nothing alive.
 *
 * <p>Objects of the program that have a field for it ({@link Shapes}) keep their number there. For all others there is a hash table of
 * weak references by identity. Readers take no lock.
 */
final class Ids {
    private static final Unsafe U = Unsafe.getUnsafe();
    private static final long ID = U.objectFieldOffset(Entry.class, "id");
    private static final int SEGMENTS = 64;
    /** How many objects that it used last a thread finds without looking for them. */
    static final int RECENT = 64;
    private static final int LONGEST_TEXT = 80;
    /** In place of a class: the number is not in use. */
    private static final int NO_OBJECT = -1;

    /** What is known of an object, which it does not keep alive. */
    static final class Entry extends WeakReference<Object> {
        final int hash;
        /** Its number, or 0 as long as no record needs one. */
        volatile long id;
        /** What {@link Shapes} keeps in other objects, as long as there is no number. */
        volatile Object state;
        volatile Entry next;
        /** The object that this one is a part or a view of, or 0. */
        volatile long root;
        /** The lock that this is, or is a part of. */
        volatile LockHolders holders;

        Entry(Object object, int hash, Object state, Entry next, ReferenceQueue<Object> queue) {
            super(object, queue);
            this.hash = hash;
            this.state = state;
            this.next = next;
        }
    }

    private static final class Segment {
        private volatile Entry[] table = new Entry[64];
        private final ReferenceQueue<Object> dead = new ReferenceQueue<>();
        private int size;

        /** Finds an object without a lock. While entries move to a larger table it may be missed, which {@code add} sets right. */
        @ForceInline
        Entry find(Object object, int hash) {
            Entry[] table = this.table;
            for (Entry e = table[hash & table.length - 1]; e != null; e = e.next) {
                if (e.refersTo(object)) {
                    return e;
                }
            }
            return null;
        }

        /** The entry of an object, which is added unless another thread did so first. */
        synchronized Entry add(Object object, int hash, Object state) {
            Entry known = find(object, hash);
            if (known != null) {
                return known;
            }
            for (Object gone; (gone = dead.poll()) != null;) {
                remove((Entry) gone);
            }
            if (size >= table.length) {
                grow();
            }
            Entry[] table = this.table;
            int slot = hash & table.length - 1;
            Entry entry = new Entry(object, hash, state, table[slot], dead);
            table[slot] = entry;
            // Publishes the entry.
            this.table = table;
            size++;
            return entry;
        }

        private void remove(Entry gone) {
            Entry[] table = this.table;
            int slot = gone.hash & table.length - 1;
            Entry before = null;
            for (Entry e = table[slot]; e != null; before = e, e = e.next) {
                if (e == gone) {
                    // Who is there goes on from there.
                    if (before == null) {
                        table[slot] = e.next;
                    } else {
                        before.next = e.next;
                    }
                    size--;
                    return;
                }
            }
        }

        private void grow() {
            Entry[] old = table;
            Entry[] wide = new Entry[old.length * 2];
            size = 0;
            for (Entry chain : old) {
                for (Entry e = chain; e != null;) {
                    Entry next = e.next;
                    if (!e.refersTo(null)) {
                        int slot = e.hash & wide.length - 1;
                        e.next = wide[slot];
                        wide[slot] = e;
                        size++;
                    }
                    e = next;
                }
            }
            table = wide;
        }
    }

    private static final Segment[] segments = new Segment[SEGMENTS];

    static {
        for (int i = 0; i < SEGMENTS; i++) {
            segments[i] = new Segment();
        }
    }

    private Ids() {}

    /** The number of an object; 0 is null. */
    @ForceInline
    static long of(Object object, ThreadLog log) {
        if (object == null) {
            return 0;
        }
        long state = Shapes.of(object).state();
        return state != 0 ? of(object, state, log) : inTable(object, log);
    }

    /** The number of an object that keeps it there; if there is no such place, it is in the table. */
    @ForceInline
    static long of(Object object, long state, ThreadLog log) {
        if (state == 0) {
            return inTable(object, log);
        }
        return U.getReferenceAcquire(object, state) instanceof Shapes.Tag tag && tag.object() == object ? tag.id() : tag(object, state, log);
    }

    @ForceInline
    private static long inTable(Object object, ThreadLog log) {
        if (object == null) {
            return 0;
        }
        Entry entry = entry(object, log);
        return entry == null ? 0 : idOf(object, entry, log);
    }

    /** The number of an object with this entry. */
    @ForceInline
    static long idOf(Object object, Entry entry, ThreadLog log) {
        long id = entry.id;
        return id != 0 ? id : number(object, entry, log);
    }

    /** The entry of an object; nothing if nothing is recorded, so that objects need not be distinguished. */
    @ForceInline
    static Entry entry(Object object, ThreadLog log) {
        int hash = hash(object);
        Entry recent = log.recent[hash & RECENT - 1];
        return recent != null && recent.refersTo(object) ? recent : look(object, hash, null, log);
    }

    /** The entry of an object that the thread has not used lately; a new one has this state. */
    @DontInline
    private static Entry look(Object object, int hash, Object state, ThreadLog log) {
        if (log == ThreadLog.IDLE) {
            return null;
        }
        Segment segment = segments[hash & SEGMENTS - 1];
        Entry entry = segment.find(object, hash / SEGMENTS);
        if (entry == null) {
            entry = segment.add(object, hash / SEGMENTS, state);
        }
        log.recent[hash & RECENT - 1] = entry;
        return entry;
    }

    @ForceInline
    private static int hash(Object object) {
        int hash = System.identityHashCode(object);
        return hash ^ hash >>> 15;
    }

    /** Adds an array that only this thread can reach. */
    static void addLocal(Object array, ThreadLog log) {
        look(array, hash(array), log, log);
    }

    /** What is known of an array without a number, as {@link Shapes} says; nothing of one that is not in the table. */
    static Object stateOf(Object array, ThreadLog log) {
        int hash = hash(array);
        Entry entry = log.recent[hash & RECENT - 1];
        if (entry == null || !entry.refersTo(array)) {
            entry = segments[hash & SEGMENTS - 1].find(array, hash / SEGMENTS);
        }
        return entry == null ? null : entry.state;
    }

    /** Shares an array together with another object; whether it was local. */
    static boolean share(Object array, Shapes.Shared with, ThreadLog log) {
        if (!(stateOf(array, log) instanceof ThreadLog owner)) {
            return false;
        }
        Local.check(array, owner, log);
        entry(array, log).state = with;
        return true;
    }

    /** The number of the object that this one is a part or a view of; its own if there is none. */
    static long root(Object object, ThreadLog log) {
        long id = of(object, log);
        Entry entry = linked(object, log);
        return entry == null || entry.root == 0 ? id : entry.root;
    }

    /** Makes an object a part or a view of another. */
    static void link(Object object, Object whole, ThreadLog log) {
        of(object, log);
        Entry entry = linked(object, log);
        if (entry != null) {
            if (object instanceof Lock || object instanceof Condition) {
                entry.holders = holders(whole, log);
            }
            entry.root = root(whole, log);
        }
    }

    /** The entry of an object that may have a root: those that keep their own number have none. */
    private static Entry linked(Object object, ThreadLog log) {
        return Shapes.of(object).state() == 0 ? entry(object, log) : null;
    }

    /** The holders of the lock that this object is, or is a part of. */
    static LockHolders holders(Object lock, ThreadLog log) {
        Entry entry = linked(lock, log);
        if (entry == null) {
            return null;
        }
        if (entry.holders == null) {
            synchronized (entry) {
                if (entry.holders == null) {
                    entry.holders = new LockHolders();
                }
            }
        }
        return entry.holders;
    }

    @DontInline
    private static long tag(Object object, long at, ThreadLog log) {
        if (log == ThreadLog.IDLE) {
            return 0;
        }
        while (true) {
            Object state = U.getReferenceAcquire(object, at);
            if (state instanceof Shapes.Tag tag && tag.object() == object) {
                return tag.id();
            }
            long fresh = tell(object, state, log);
            if (U.compareAndSetReference(object, at, state, new Shapes.Tag(object, fresh))) {
                if (state instanceof ThreadLog) {
                    Local.shareParts(object, fresh, log);
                }
                return fresh;
            }
            // Another thread was first: there is no second object.
            log.tellObject(fresh, NO_OBJECT, 0, false);
        }
    }

    @DontInline
    private static long number(Object object, Entry entry, ThreadLog log) {
        Object state = entry.state;
        long fresh = tell(object, state, log);
        if (!U.compareAndSetLong(entry, ID, 0, fresh)) {
            log.tellObject(fresh, NO_OBJECT, 0, false);
            return entry.id;
        }
        entry.state = null;
        if (state instanceof ThreadLog) {
            Local.shareParts(object, fresh, log);
        }
        return fresh;
    }

    /** Describes an object with a new number, before others can use the number. */
    private static long tell(Object object, Object state, ThreadLog log) {
        if (state instanceof ThreadLog owner) {
            Local.check(object, owner, log);
        }
        long fresh = log.nextId();
        log.tellObject(fresh, Log.number(object.getClass()), state instanceof Shapes.Shared shared ? shared.with() : 0, state instanceof ThreadLog);
        if (object instanceof String text && text.length() <= LONGEST_TEXT) {
            Log.write("O", fresh, text);
        } else if (object instanceof Enum<?> constant) {
            Log.write("O", fresh, constant.name());
        } else if (object instanceof Class<?> type) {
            Log.write("O", fresh, type.getTypeName() + ".class");
        }
        return fresh;
    }
}
