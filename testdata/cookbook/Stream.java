public class Stream {
    static class Sink {
        private final StringBuilder text = new StringBuilder();
        private boolean closed;

        synchronized void write(String line) {
            if (closed) {
                throw new IllegalStateException("closed");
            }
            text.append(line);
        }

        synchronized void close() {
            closed = true;
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Sink sink = new Sink();
        Thread worker = new Thread(() -> sink.write("done"), "worker");
        worker.start();
        if (Boolean.getBoolean("right")) {
            worker.join();
        } else {
            Thread.sleep(300);
        }
        sink.close();
        worker.join();
    }
}
