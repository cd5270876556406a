package foresee.jvm;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.ref.WeakReference;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.CRC32;

/**
 * Sends the log to an observer while the program runs; docs/formats/wire.md describes the bytes.
 *
 * <p>The log is on disk as without an observer, and a thread of its own reads there what is new, in rounds: so the program never
 * waits for the observer, and nothing is lost if the observer goes away. If it comes back, the log is sent again from its beginning,
 * under a new number, because an observer does not keep what it knows of a log.
 */
final class Sender implements Runnable {
    private static final int LOG = 140;
    private static final int END = 5;
    /** How many bytes of the log a frame has, at most. */
    private static final int PIECE = 256 << 10;
    private static final int LONGEST_TEXT = 256;
    private static final int LONGEST_REPLY = 4096;
    private static final int REPLY = 20;
    private static final int WELCOME = 0;
    private static final int FAREWELL = 1;
    private static final int REFUSED = 2;
    private static final long PAUSE_MILLIS = 50;
    private static final long RETRY_MILLIS = 500;
    private static final int QUIET_ROUNDS = 100;
    /** How long the end of the JVM waits for an observer that takes nothing. */
    private static final long PATIENCE_NANOS = 10_000_000_000L;

    private final Settings settings;
    private final Path folder;
    /** The threads whose records are sent; none is kept alive by that. */
    private static final List<WeakReference<RecordFile>> files = new ArrayList<>();

    private volatile boolean isEnding;
    /** Changes whenever the observer has taken something. */
    private volatile long progress;
    private volatile boolean isDone;
    /** Whether the first attempt to reach the observer has ended: it knows of the program, or cannot be had. */
    private boolean isKnown;
    private volatile String failure = "there was no time to connect to it";

    /** How much of each file has been sent on the present connection: the names, then the threads from one on. */
    private List<Long> sent;
    private long frames;
    private OutputStream output;
    private final Thread thread = new Thread(this, "foresee-sender");

    Sender(Settings settings, Path folder) {
        this.settings = settings;
        this.folder = folder;
    }

    /** Fails if the settings cannot be meant. */
    static void check(Settings settings) {
        address(settings.observer);
        for (String text : List.of(settings.token, settings.name)) {
            if (text.getBytes(StandardCharsets.UTF_8).length > LONGEST_TEXT) {
                throw new IllegalArgumentException("the token and the name have at most " + LONGEST_TEXT + " bytes: `" + text + "`");
            }
        }
    }

    /** A thread begins to record. */
    static void add(RecordFile file) {
        synchronized (files) {
            while (files.size() < file.number) {
                files.add(null);
            }
            files.set(file.number - 1, new WeakReference<>(file));
        }
    }

    /**
     * Begins to send. The program begins when the observer has welcomed it, or cannot be reached: one that is halted at once was
     * there nevertheless. An observer that does not answer is not waited for any longer than at the end.
     */
    synchronized void start() {
        thread.setDaemon(true);
        thread.start();
        long since = System.nanoTime();
        while (!isKnown && System.nanoTime() - since < PATIENCE_NANOS) {
            try {
                wait(PAUSE_MILLIS);
            } catch (InterruptedException e) {
                // There is nothing else that the main thread could do yet.
            }
        }
    }

    private synchronized void known() {
        isKnown = true;
        notifyAll();
    }

    /** Waits until everything has been sent, as long as the observer takes something. Says so if it has not. */
    void finish(boolean isFolderOurs) {
        isEnding = true;
        long seen = progress;
        long since = System.nanoTime();
        while (!isDone && thread.isAlive() && System.nanoTime() - since < PATIENCE_NANOS) {
            try {
                thread.join(PAUSE_MILLIS);
            } catch (InterruptedException e) {
                // Nobody knows this thread; there is nothing else that it should do.
            }
            if (progress != seen) {
                seen = progress;
                since = System.nanoTime();
            }
        }
        if (!isDone) {
            System.err.println("foresee: the observer at " + settings.observer + " did not get everything: " + failure);
            System.err.println("foresee: the log is in " + folder + "; foresee check reads it");
        } else if (isFolderOurs) {
            delete();
        }
    }

    private void delete() {
        try (Stream<Path> inside = Files.list(folder)) {
            for (Path path : (Iterable<Path>) inside::iterator) {
                Files.delete(path);
            }
            Files.delete(folder);
            Files.delete(folder.getParent());
        } catch (IOException e) {
            // It is in a folder for temporary files.
        }
    }

    @Override
    public void run() {
        ThreadLog.ignore();
        while (!isDone) {
            boolean wasEnding = isEnding;
            // What takes time is done before an observer waits for the greeting.
            byte[] hello = hello();
            try (SocketChannel channel = SocketChannel.open(address(settings.observer))) {
                isDone = talk(channel, hello);
            } catch (Throwable e) {
                // The program must not notice, whatever it is.
                failure = e.getMessage() == null ? e.toString() : e.getMessage();
            }
            known();
            if (!isDone && wasEnding) {
                // The last attempt began when everything was there.
                return;
            }
            if (!isDone && !isEnding) {
                sleep(RETRY_MILLIS);
            }
        }
    }

    private void sleep(long millis) {
        try {
            for (long left = millis; left > 0 && !isEnding; left -= PAUSE_MILLIS) {
                Thread.sleep(PAUSE_MILLIS);
            }
        } catch (InterruptedException e) {
            // Nobody knows this thread.
        }
    }

    private static SocketAddress address(String observer) {
        if (observer.startsWith("unix:")) {
            return UnixDomainSocketAddress.of(observer.substring("unix:".length()));
        }
        int colon = observer.lastIndexOf(':');
        try {
            return new InetSocketAddress(observer.substring(0, Math.max(colon, 0)).replaceAll("[\\[\\]]", ""), Integer.parseInt(observer.substring(colon + 1)));
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("`" + observer + "` is not the address of an observer: HOST:PORT or unix:PATH");
        }
    }

    /** Sends everything from the beginning; whether the observer has it all. */
    private boolean talk(SocketChannel channel, byte[] hello) throws IOException {
        output = Channels.newOutputStream(channel);
        InputStream input = Channels.newInputStream(channel);
        output.write(hello);
        if (reply(input) != WELCOME) {
            throw new IOException("it did not welcome the program");
        }
        known();
        sent = new ArrayList<>(List.of(0L));
        frames = 0;
        boolean wasNews = true;
        int quiet = 0;
        boolean isLast;
        do {
            isLast = isEnding;
            boolean isNews = round();
            // What came in a round counts after the next; and an observer gives up on a connection that is silent for long.
            if (isNews || wasNews || ++quiet > QUIET_ROUNDS) {
                mark();
                quiet = 0;
            }
            wasNews = isNews;
            if (!isNews && !isLast) {
                sleep(PAUSE_MILLIS);
            }
            if (input.available() > 0) {
                reply(input);
            }
        } while (!isLast);
        round();
        mark();
        frame(END, new byte[8], 8);
        channel.shutdownOutput();
        return reply(input) == FAREWELL;
    }

    private byte[] hello() {
        byte[] token = settings.token.getBytes(StandardCharsets.UTF_8);
        byte[] name = settings.name.getBytes(StandardCharsets.UTF_8);
        byte[] random = new byte[32];
        new SecureRandom().nextBytes(random);
        ByteBuffer hello = ByteBuffer.allocate(40 + token.length + name.length + 16).order(ByteOrder.LITTLE_ENDIAN);
        hello.put(new byte[] {(byte) 0x89, 'F', 'S', 'O', '\r', '\n', 0x1a, '\n'});
        hello.putShort((short) 2).put((byte) (Log.isAsync ? 1 : 0)).put((byte) 1).putShort((short) 1);
        hello.putShort((short) token.length).putShort((short) name.length).putShort((short) 16).putInt(0);
        hello.put(random, 0, 16).put(token).put(name).put(random, 16, 16);
        hello.putInt(20, crc(hello.array(), hello.capacity()));
        return hello.array();
    }

    private static int crc(byte[] bytes, int length) {
        CRC32 crc = new CRC32();
        crc.update(bytes, 0, length);
        return (int) crc.getValue();
    }

    /** Reads the observer's next reply; what it says of a refusal is the reason. */
    private static int reply(InputStream input) throws IOException {
        byte[] fixed = input.readNBytes(REPLY);
        if (fixed.length < REPLY) {
            throw new EOFException("it closed the connection");
        }
        ByteBuffer reply = ByteBuffer.wrap(fixed).order(ByteOrder.LITTLE_ENDIAN);
        int length = reply.getInt(16);
        if (fixed[0] != 'F' || fixed[1] != 'S' || fixed[2] != 'O' || fixed[3] != 'R' || length < 0 || length > LONGEST_REPLY) {
            throw new IOException("it is not an observer");
        }
        String text = new String(input.readNBytes(length), StandardCharsets.UTF_8);
        if (fixed[4] >= REFUSED) {
            throw new IOException(text);
        }
        return fixed[4];
    }

    private void frame(int kind, byte[] payload, int length) throws IOException {
        ByteBuffer start = ByteBuffer.allocate(24).order(ByteOrder.LITTLE_ENDIAN);
        start.putLong(frames++).put((byte) kind).put((byte) 0).putShort((short) 0).putInt(length).putInt(0).putInt(crc(payload, length));
        byte[] header = new byte[16];
        System.arraycopy(start.array(), 8, header, 0, 16);
        start.putShort(10, (short) crc(header, 16));
        output.write(start.array());
        output.write(payload, 0, length);
        progress++;
    }

    /** Sends what is new; whether there was anything. */
    private boolean round() throws IOException {
        int count;
        synchronized (files) {
            count = files.size();
        }
        boolean isNews = sendNames();
        for (int number = 1; number <= count; number++) {
            if (sent.size() <= number) {
                sent.add(0L);
            }
            long from = sent.get(number);
            // A thread that records faster than it is read is not followed for ever.
            for (long goal = Long.MAX_VALUE; from >= 0 && from < goal;) {
                WeakReference<RecordFile> known = file(number);
                RecordFile file = known == null ? null : known.get();
                RecordFile.Part part = file != null ? file.since(from, PIECE) : known != null ? RecordFile.since(folder.resolve(number + ".log"), from, PIECE) : null;
                if (part == null) {
                    break;
                }
                goal = Math.min(goal, part.goal());
                if (part.records().length == 0) {
                    // Nobody can write into the file of a thread that is gone.
                    from = file == null ? -1 : from;
                    break;
                }
                from += part.records().length;
                // The names of what was just read are in the log by now.
                sendNames();
                piece(number, part.records());
                isNews = true;
            }
            sent.set(number, from);
        }
        return isNews;
    }

    private static WeakReference<RecordFile> file(int number) {
        synchronized (files) {
            return files.get(number - 1);
        }
    }

    private boolean sendNames() throws IOException {
        boolean isNews = false;
        for (byte[] names; (names = names()).length > 0; isNews = true) {
            piece(0, names);
        }
        return isNews;
    }

    private void piece(int file, byte[] bytes) throws IOException {
        ByteBuffer payload = ByteBuffer.allocate(9 + bytes.length).order(ByteOrder.LITTLE_ENDIAN);
        payload.put((byte) 0).putInt(file).putInt(bytes.length).put(bytes);
        frame(LOG, payload.array(), payload.capacity());
    }

    /** Says that a round is over. */
    private void mark() throws IOException {
        frame(LOG, new byte[] {1}, 1);
    }

    /** The names that are new, as whole lines. */
    private byte[] names() throws IOException {
        byte[] lines = RecordFile.bytes(folder.resolve("names"), sent.get(0), PIECE);
        int length = lines.length;
        while (length > 0 && lines[length - 1] != '\n') {
            length--;
        }
        sent.set(0, sent.get(0) + length);
        return length == lines.length ? lines : java.util.Arrays.copyOf(lines, length);
    }
}
