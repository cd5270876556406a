package foresee.jvm;

import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * Numbers of objects, which are unique for the life of the process and keep nothing alive.
 *
 * <p>A hash table of weak references by identity. Readers take no lock.
 */
final class Ids {
    private static final int SEGMENTS = 64;
    /** How many objects that it used last a thread finds without looking for them. */
    static final int RECENT = 64;
    private static final int LONGEST_TEXT = 80;
    /** In place of a class: the number is not in use. */
    private static final int NO_OBJECT = -1;

    /** A number, which does not keep its object alive. */
    static final class Entry extends WeakReference<Object> {
        final int hash;
        final long id;
        final Entry next;
        /** The object that this one is a part or a view of, or 0. */
        volatile long root;

        Entry(Object object, int hash, long id, long root, Entry next, ReferenceQueue<Object> queue) {
            super(object, queue);
            this.root = root;
            this.hash = hash;
            this.id = id;
            this.next = next;
        }
    }

    private static final class Segment {
        private volatile Entry[] table = new Entry[64];
        private final ReferenceQueue<Object> dead = new ReferenceQueue<>();
        private int size;

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

        synchronized void link(Object object, int hash, long root) {
            Entry entry = find(object, hash);
            if (entry != null) {
                entry.root = root;
            }
        }

        /** Adds an object unless another thread did so first; the number it has now. */
        synchronized long add(Object object, int hash, long id) {
            Entry known = find(object, hash);
            if (known != null) {
                return known.id;
            }
            for (Object gone; (gone = dead.poll()) != null;) {
                remove((Entry) gone);
            }
            if (size >= table.length) {
                grow();
            }
            Entry[] table = this.table;
            int slot = hash & table.length - 1;
            // Published by the write of the volatile field below, and complete before: all its fields are final.
            table[slot] = new Entry(object, hash, id, 0, table[slot], dead);
            this.table = table;
            size++;
            return id;
        }

        private void remove(Entry gone) {
            Entry[] table = this.table;
            int slot = gone.hash & table.length - 1;
            Entry kept = null;
            // Readers may be in the old chain, so a new one takes its place.
            for (Entry e = table[slot]; e != null; e = e.next) {
                if (e == gone || e.hash == gone.hash && e.id == gone.id) {
                    size--;
                } else {
                    Object object = e.get();
                    if (object != null) {
                        kept = new Entry(object, e.hash, e.id, e.root, kept, dead);
                    } else {
                        size--;
                    }
                }
            }
            table[slot] = kept;
        }

        private void grow() {
            Entry[] old = table;
            Entry[] wide = new Entry[old.length * 2];
            size = 0;
            for (Entry chain : old) {
                for (Entry e = chain; e != null; e = e.next) {
                    Object object = e.get();
                    if (object != null) {
                        int slot = e.hash & wide.length - 1;
                        wide[slot] = new Entry(object, e.hash, e.id, e.root, wide[slot], dead);
                        size++;
                    }
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
        int hash = hash(object);
        Entry recent = log.recent[hash & RECENT - 1];
        return recent != null && recent.refersTo(object) ? recent.id : look(object, hash, log);
    }

    /** The number of an object that the thread has not used lately. */
    @DontInline
    private static long look(Object object, int hash, ThreadLog log) {
        Segment segment = segments[hash & SEGMENTS - 1];
        Entry entry = segment.find(object, hash / SEGMENTS);
        if (entry == null) {
            return add(object, hash / SEGMENTS, segment, log);
        }
        log.recent[hash & RECENT - 1] = entry;
        return entry.id;
    }

    @ForceInline
    private static int hash(Object object) {
        int hash = System.identityHashCode(object);
        return hash ^ hash >>> 15;
    }

    /** The number of the object that this one is a part or a view of; its own if there is none. */
    static long root(Object object, ThreadLog log) {
        long id = of(object, log);
        int hash = hash(object);
        Entry entry = segments[hash & SEGMENTS - 1].find(object, hash / SEGMENTS);
        return entry == null || entry.root == 0 ? id : entry.root;
    }

    /** Makes an object a part or a view of another. */
    static void link(Object object, long root, ThreadLog log) {
        of(object, log);
        int hash = hash(object);
        segments[hash & SEGMENTS - 1].link(object, hash / SEGMENTS, root);
    }

    @DontInline
    private static long add(Object object, int hash, Segment segment, ThreadLog log) {
        if (log == ThreadLog.IDLE) {
            // Nothing is recorded, so objects need not be distinguished.
            return 0;
        }
        long fresh = log.nextId();
        // The log describes an object before others can use its number.
        log.tellObject(fresh, Log.number(object.getClass()));
        if (object instanceof String text && text.length() <= LONGEST_TEXT) {
            Log.write("O", fresh, text);
        } else if (object instanceof Enum<?> constant) {
            Log.write("O", fresh, constant.name());
        } else if (object instanceof Class<?> type) {
            Log.write("O", fresh, type.getTypeName() + ".class");
        }
        long id = segment.add(object, hash, fresh);
        if (id != fresh) {
            // Another thread was first: there is no second object.
            log.tellObject(fresh, NO_OBJECT);
        }
        return id;
    }
}
