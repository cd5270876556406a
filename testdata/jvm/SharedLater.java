import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;

/**
 * Objects that one thread makes and fills, and that others get in every way there is. With an argument, the first thread changes each
 * of them once more when it has handed it over, without any order.
 */
public class SharedLater {
    static class Box implements Cloneable {
        int value;
        Box next;
        Object[] parts;

        Box() {
            value = 1;
        }

        Box with(Box next) {
            this.next = next;
            return this;
        }

        @Override
        public Box clone() {
            try {
                return (Box) super.clone();
            } catch (CloneNotSupportedException e) {
                throw new AssertionError(e);
            }
        }
    }

    /** Keeps what it is given in a field that is final. */
    static final class Holder {
        final Box box;
        final int[] numbers = {1, 2, 3};

        Holder(Box box) {
            this.box = box;
        }
    }

    record Pair(Box one, Box other) {}

    /** Leaves its constructor before it is complete. */
    static final class Early {
        final Box box;

        Early(Box box) {
            early.set(this);
            this.box = box;
        }
    }

    /** A thread that is an object of the program. */
    static final class Worker extends Thread {
        private final Box given;
        private Box made;

        Worker(Box given) {
            this.given = given;
        }

        @Override
        public void run() {
            sum(given);
            made = new Box().with(new Box());
        }
    }

    /** The JDK calls it and keeps what it returns. */
    static final class Maker implements Callable<Box>, Supplier<Box> {
        @Override
        public Box call() {
            return new Box().with(new Box());
        }

        @Override
        public Box get() {
            return call();
        }
    }

    static final AtomicReference<Early> early = new AtomicReference<>();
    static final AtomicReferenceArray<Box> slots = new AtomicReferenceArray<>(2);
    static final LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();
    static final SynchronousQueue<Object> hands = new SynchronousQueue<>();
    static final ThreadLocal<Box> own = ThreadLocal.withInitial(Box::new);
    static volatile Box seen;
    static boolean isRacy;

    static int sum(Box first) {
        int sum = 0;
        for (Box box = first; box != null; box = box.next) {
            sum += box.value;
            if (box.parts != null) {
                for (Object part : box.parts) {
                    sum += part instanceof Box inner ? inner.value : 0;
                }
            }
        }
        return sum;
    }

    static Box chain() {
        Box last = new Box();
        last.parts = new Object[] {new Box(), null, new Box()};
        last.parts[1] = new Box();
        Box copy = last.clone();
        copy.parts = copy.parts.clone();
        System.arraycopy(last.parts, 0, copy.parts, 1, 2);
        return new Box().with(copy.with(last));
    }

    private Box own() {
        return chain();
    }

    /** Hands something over by means of a queue. */
    static void give(Object object, Box inside) throws InterruptedException {
        queue.put(object);
        if (isRacy) {
            inside.value = 2;
        }
    }

    static void first() throws Exception {
        Box box = chain();
        give(box, box.next.next);
        box = chain();
        give(new Holder(box), box);
        box = chain();
        give(new Pair(box, new Box()), box);
        box = chain();
        Box captured = box;
        give((Runnable) () -> sum(captured), box);
        box = chain();
        give(new ArrayList<>(List.of(box)), box);
        box = chain();
        Map<String, Box> map = new HashMap<>();
        map.put("box", box);
        give(map, box);
        Map<String, Box> made = new HashMap<>();
        give(made, made.computeIfAbsent("box", key -> chain()));
        Map<Integer, Supplier<Box>> makers = new HashMap<>();
        makers.put(1, Box::new);
        box = makers.get(1).get();
        give(box, box);
        box = chain();
        give(new Box[][] {{box}}, box);
        Constructor<Box> constructor = Box.class.getDeclaredConstructor();
        box = constructor.newInstance();
        give(box, box);
        box = chain();
        Box inner = box;
        give(new Object() {
            @Override
            public int hashCode() {
                return sum(inner);
            }
        }, box);
        box = chain();
        slots.set(1, box);
        give("slot", box);
        box = chain();
        seen = box;
        give("seen", box);
        box = chain();
        new Early(box);
        give("early", box);
        box = chain();
        hands.put(box);
        ExecutorService pool = Executors.newSingleThreadExecutor();
        sum(pool.submit(new Maker()).get());
        sum(pool.submit(() -> chain()).get());
        sum(pool.submit(new SharedLater()::own).get());
        pool.submit(() -> own.get().value++).get();
        pool.shutdown();
        Worker worker = new Worker(chain());
        worker.start();
        worker.join();
        sum(worker.made);
        queue.put("end");
    }

    static void second() throws InterruptedException {
        for (Object got = queue.take(); !got.equals("end"); got = queue.take()) {
            if (got instanceof Box box) {
                sum(box);
            } else if (got instanceof Holder holder) {
                sum(holder.box);
                holder.numbers[1]++;
            } else if (got instanceof Pair pair) {
                sum(pair.one());
            } else if (got instanceof Runnable task) {
                task.run();
            } else if (got instanceof List<?> list) {
                sum((Box) list.get(0));
            } else if (got instanceof Map<?, ?> map) {
                sum((Box) map.get("box"));
            } else if (got instanceof Box[][] boxes) {
                sum(boxes[0][0]);
            } else if (got.equals("slot")) {
                sum(slots.get(1));
            } else if (got.equals("seen")) {
                sum(seen);
            } else if (got.equals("early")) {
                sum(early.get().box);
                sum((Box) hands.take());
            } else {
                got.hashCode();
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        isRacy = arguments.length > 0;
        Thread other = new Thread(() -> {
            try {
                second();
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        other.start();
        first();
        other.join();
        System.out.println("handed over");
    }
}
