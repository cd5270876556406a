package foresee.jvm;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.ref.Reference;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;
import jdk.internal.misc.Unsafe;
import jdk.internal.vm.annotation.DontInline;
import jdk.internal.vm.annotation.ForceInline;

/**
 * The file of one thread's records.
 *
 * <p>It begins with a page of which the first word counts, then two halves of a buffer, and then what was written out of them. The
 * halves are mapped into memory and used in turn, so records survive the death of the process, and the pages that they lie in are
 * made only once. The first word is the number of bytes that were written out, plus one if the second half is in use: it changes
 * when everything else is in place.
 *
 * <p>A record has two to four words of eight bytes. The first is written last; where it is zero, nothing follows.
 *
 * <pre>
 * word 0   operation (7 bits), type of the value (3), stripe (12), slot of the object (6), an object follows (1), a value follows (1),
 *          unused (2), site (32)
 * word 1   ticket (32), the value (32, signed) or, if that follows, the index of an array's element
 * then     the object, if it is not what the slot held last, and the value, if it has no place in word 1
 * </pre>
 */
class RecordFile {
    private static final Unsafe U = Unsafe.getUnsafe();

    private static final long ADDRESS = U.objectFieldOffset(Buffer.class, "address");
    private static final int HEADER = 4096;
    private static final int HALF = 256 << 10;
    private static final int LONGEST = 32;
    private static final int SLOTS = 64;
    private static final int HAS_OBJECT = 1 << 28;
    private static final int HAS_VALUE = 1 << 29;
    /** How much must be free for all records of a step; what calls within calls need beyond that is looked after in {@code put}. */
    private static final int ROOM = 64 * LONGEST;

    final int number;
    private MappedByteBuffer mapped;
    /** Where the mapped part begins, where the next record goes, and where the half ends. */
    private long base;
    private long next;
    private long end;
    private int half;
    private long written;
    /** Whether records are being written out: what is called meanwhile is not a step of the program. */
    private boolean isWriting;
    private boolean wasInterrupted;
    /** The object that was last recorded with each slot. */
    private final long[] slots = new long[SLOTS];

    RecordFile(int number) {
        this.number = number;
    }

    /** Whether the records of a step have room. */
    @ForceInline
    final boolean room() {
        return next + ROOM <= end && !isWriting || makeRoom();
    }

    /** Adds a record. */
    @ForceInline
    final void put(int op, int type, int stripe, int site, int ticket, int index, long object, long value) {
        if (next + 2 * LONGEST > end && !makeRoom()) {
            return;
        }
        long at = next;
        long then = at + 16;
        int slot = (int) (object ^ object >>> 40) & SLOTS - 1;
        int flags = op | type << 7 | stripe << 10 | slot << 22;
        if (slots[slot] != object) {
            flags |= HAS_OBJECT;
            U.putLong(then, object);
            then += 8;
        }
        long tail;
        if (index == 0 && value == (int) value) {
            tail = value;
        } else {
            tail = index;
            flags |= HAS_VALUE;
            U.putLong(then, value);
            then += 8;
        }
        U.putLong(at + 8, tail << 32 | ticket & 0xffffffffL);
        // The memory held other records before.
        U.putLong(then, 0);
        U.putLongRelease(null, at, flags & 0xffffffffL | (long) site << 32);
        // If the stack is full before this, the record is written once more.
        next = then;
        slots[slot] = object;
    }

    @DontInline
    private boolean makeRoom() {
        if (isWriting) {
            return false;
        }
        isWriting = true;
        // Channels fail in an interrupted thread, and are closed.
        wasInterrupted = Thread.interrupted();
        try {
            return mapped == null ? begin() : writeOut();
        } catch (IOException e) {
            Log.partial("the log cannot be written: " + e.getMessage());
            Log.isOn = false;
            return false;
        } finally {
            if (wasInterrupted) {
                Thread.currentThread().interrupt();
            }
            isWriting = false;
        }
    }

    private boolean begin() throws IOException {
        if (!Log.mayTake(2 * HEADER)) {
            return false;
        }
        mapped = Privileged.call(() -> withFile(file -> file.map(FileChannel.MapMode.READ_WRITE, 0, HEADER + 2 * HALF)));
        base = address(mapped);
        use(0);
        return true;
    }

    private boolean writeOut() throws IOException {
        int start = HEADER + half * HALF;
        int length = (int) (next - base) - start;
        if (!Log.mayTake(length)) {
            return false;
        }
        long from = HEADER + 2 * HALF + written;
        Privileged.call(() -> withFile(file -> {
            ByteBuffer records = mapped.duplicate().position(start).limit(start + length);
            while (records.hasRemaining()) {
                file.write(records, from + records.position() - start);
            }
            return null;
        }));
        U.putLong(base + HEADER + (1 - half) * HALF, 0);
        written += length;
        U.putLongRelease(null, base, written | 1 - half);
        use(1 - half);
        return true;
    }

    /** Whole records, and how many bytes of records there may have been when they were read. */
    record Part(byte[] records, long goal) {}

    /** Records of a thread that may be running, from this byte on. */
    final Part since(long from, int most) throws IOException {
        try {
            while (true) {
                long head = U.getLongAcquire(null, base);
                long out = head & ~1L;
                if (from < out) {
                    return new Part(whole(bytes(path(), HEADER + 2 * HALF + from, (int) Math.min(most, out - from))), out + HALF);
                }
                long start = base + HEADER + (head & 1) * HALF;
                long at = start + from - out;
                byte[] records = new byte[(int) (lengthFrom(at, start + HALF) - at)];
                mapped.duplicate().position((int) (at - base)).get(records);
                U.loadFence();
                // If the halves have changed places, what was read there may be something else.
                if (U.getLongAcquire(null, base) == head) {
                    return new Part(records, out + HALF);
                }
            }
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /** Where the records end that begin here. */
    private static long lengthFrom(long at, long end) {
        for (long head; at + LONGEST <= end && (head = U.getLongAcquire(null, at)) != 0;) {
            at += length(head);
        }
        return at;
    }

    /** The same for a thread that is gone. */
    static Part since(Path path, long from, int most) throws IOException {
        byte[] head = bytes(path, 0, 8);
        if (head.length < 8) {
            return new Part(new byte[0], 0);
        }
        long word = word(head, 0);
        long out = word & ~1L;
        boolean isOut = from < out;
        long start = isOut ? HEADER + 2 * HALF + from : HEADER + (word & 1) * HALF + from - out;
        return new Part(whole(bytes(path, start, (int) Math.min(most, isOut ? out - from : out + HALF - from))), out + HALF);
    }

    private static int length(long head) {
        return 16 + ((head & HAS_OBJECT) != 0 ? 8 : 0) + ((head & HAS_VALUE) != 0 ? 8 : 0);
    }

    private static long word(byte[] bytes, int at) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.nativeOrder()).getLong(at);
    }

    /** The records at the beginning of these bytes, without what is cut off. */
    private static byte[] whole(byte[] bytes) {
        int at = 0;
        for (long head; at + 16 <= bytes.length && (head = word(bytes, at)) != 0 && at + length(head) <= bytes.length;) {
            at += length(head);
        }
        return at == bytes.length ? bytes : Arrays.copyOf(bytes, at);
    }

    /** A part of a file, as far as there is one. */
    static byte[] bytes(Path path, long from, int most) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "r")) {
            byte[] bytes = new byte[(int) Math.min(most, Math.max(file.length() - from, 0))];
            file.seek(from);
            file.readFully(bytes);
            return bytes;
        }
    }

    private Path path() {
        return Log.folder.resolve(number + ".log");
    }

    private void use(int half) {
        this.half = half;
        next = base + HEADER + half * HALF;
        end = next + HALF;
    }

    private static long address(MappedByteBuffer buffer) {
        return U.getLong(buffer, ADDRESS);
    }

    private interface Use<T> {
        T with(FileChannel file) throws IOException;
    }

    /** There may be more threads than files that can be open. */
    private <T> T withFile(Use<T> use) throws IOException {
        String path = path().toString();
        while (true) {
            try (RandomAccessFile file = new RandomAccessFile(path, "rw"); FileChannel channel = file.getChannel()) {
                return use.with(channel);
            } catch (ClosedByInterruptException e) {
                wasInterrupted = Thread.interrupted();
            }
        }
    }
}
