import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Exchanger;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Phaser;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.StampedLock;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Programs with the objects of {@code ByChance} in which nothing depends on chance. */
public class ByDesign {
    static final class Box {
        int value;
    }

    static int data;
    static final Object first = new Object();
    static final Object second = new Object();

    static final class Left {
        static final int value = Right.number() + 1;

        static int number() {
            return 1;
        }
    }

    static final class Right {
        static final int value = Left.number() + 1;

        static int number() {
            return 2;
        }
    }

    static final class Alone {
        static final int value = Integer.getInteger("ByDesign", 7);

        static int number() {
            return value;
        }
    }

    static void expect(int value, int expected) {
        if (value != expected) {
            throw new IllegalStateException(value + " instead of " + expected);
        }
    }

    /** A thread for each number, from zero. */
    static void threads(int count, java.util.function.IntFunction<ByChance.Step> step) throws Exception {
        ByChance.threads(IntStream.range(0, count).mapToObj(step).toArray(ByChance.Step[]::new));
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "mutex" -> {
                Semaphore one = new Semaphore(1);
                threads(3, i -> () -> ByChance.pass(one));
                expect(ByChance.data, 3);
            }
            case "signal" -> {
                Semaphore ready = new Semaphore(0);
                ByChance.threads(() -> {
                    data = 1;
                    ready.release();
                }, () -> {
                    ready.acquire();
                    expect(data, 1);
                });
            }
            case "signals" -> {
                int[] results = new int[4];
                Semaphore ready = new Semaphore(0);
                for (int i = 0; i < results.length; i++) {
                    int number = i;
                    new Thread(() -> {
                        results[number] = 1;
                        ready.release();
                    }).start();
                }
                ready.acquire(results.length);
                expect(IntStream.of(results).sum(), 4);
            }
            case "turns" -> {
                Semaphore mine = new Semaphore(1);
                Semaphore yours = new Semaphore(0);
                ByChance.threads(() -> {
                    for (int i = 0; i < 5; i++) {
                        mine.acquire();
                        data++;
                        yours.release();
                    }
                }, () -> {
                    for (int i = 0; i < 5; i++) {
                        yours.acquire();
                        data++;
                        mine.release();
                    }
                });
            }
            case "pool-of-permits" -> {
                Semaphore three = new Semaphore(3);
                AtomicInteger inside = new AtomicInteger();
                threads(4, i -> () -> {
                    three.acquire();
                    inside.incrementAndGet();
                    three.release();
                });
            }
            case "map" -> {
                Map<String, Box> map = new ConcurrentHashMap<>();
                ByChance.threads(() -> {
                    Box box = new Box();
                    box.value = 1;
                    map.put("a", box);
                }, () -> {
                    Box box = map.get("a");
                    while (box == null) {
                        Thread.onSpinWait();
                        box = map.get("a");
                    }
                    expect(box.value, 1);
                });
            }
            case "counts" -> {
                Map<String, Integer> map = new ConcurrentHashMap<>();
                LongAdder adder = new LongAdder();
                threads(3, i -> () -> {
                    map.merge("k", 1, Integer::sum);
                    adder.increment();
                });
                expect(map.get("k") + adder.intValue(), 6);
            }
            case "map-of-lists" -> {
                Map<String, List<Integer>> map = new ConcurrentHashMap<>();
                threads(3, i -> () -> map.computeIfAbsent("k", key -> Collections.synchronizedList(new ArrayList<>())).add(i));
                expect(map.get("k").size(), 3);
            }
            case "queue" -> {
                BlockingQueue<Box> queue = new ArrayBlockingQueue<>(2);
                ByChance.threads(() -> {
                    for (int i = 0; i < 5; i++) {
                        Box box = new Box();
                        box.value = i;
                        queue.put(box);
                    }
                }, () -> {
                    for (int i = 0; i < 5; i++) {
                        expect(queue.take().value, i);
                    }
                });
            }
            case "queue-and-back" -> {
                BlockingQueue<Box> there = new LinkedBlockingQueue<>();
                BlockingQueue<Box> back = new LinkedBlockingQueue<>();
                Box only = new Box();
                ByChance.threads(() -> {
                    Box box = only;
                    for (int i = 0; i < 5; i++) {
                        box.value++;
                        there.put(box);
                        box = back.take();
                    }
                }, () -> {
                    for (int i = 0; i < 5; i++) {
                        Box box = there.take();
                        box.value++;
                        back.put(box);
                    }
                });
                expect(only.value, 10);
            }
            case "queue-of-tokens" -> {
                int[] results = new int[3];
                BlockingQueue<String> queue = new LinkedBlockingQueue<>();
                threads(4, i -> () -> {
                    if (i < results.length) {
                        results[i] = 1;
                        queue.add("done");
                        return;
                    }
                    for (int k = 0; k < results.length; k++) {
                        queue.take();
                    }
                    expect(IntStream.of(results).sum(), 3);
                });
            }
            case "plain-queue" -> {
                Deque<Box> queue = new ArrayDeque<>();
                ByChance.threads(() -> {
                    for (int i = 0; i < 5; i++) {
                        Box box = new Box();
                        box.value = i;
                        synchronized (first) {
                            queue.add(box);
                            first.notifyAll();
                        }
                    }
                }, () -> {
                    for (int i = 0; i < 5; i++) {
                        Box box;
                        synchronized (first) {
                            while (queue.isEmpty()) {
                                first.wait();
                            }
                            box = queue.poll();
                        }
                        expect(box.value, i);
                    }
                });
            }
            case "stamps" -> {
                StampedLock lock = new StampedLock();
                threads(4, i -> () -> {
                    if (i < 2) {
                        long stamp = lock.writeLock();
                        data++;
                        lock.unlockWrite(stamp);
                        return;
                    }
                    long stamp = lock.readLock();
                    int seen = data;
                    lock.unlockRead(stamp);
                    if (seen > 2) {
                        throw new IllegalStateException();
                    }
                });
            }
            case "exchanger" -> {
                Exchanger<Box> exchanger = new Exchanger<>();
                threads(2, i -> () -> {
                    Box box = new Box();
                    for (int k = 0; k < 3; k++) {
                        box.value++;
                        box = exchanger.exchange(box);
                        box.value++;
                    }
                });
            }
            case "barrier" -> {
                int[] values = new int[3];
                CyclicBarrier barrier = new CyclicBarrier(values.length);
                threads(values.length, i -> () -> {
                    for (int round = 1; round <= 3; round++) {
                        values[i] = round;
                        barrier.await();
                        expect(values[(i + 1) % values.length], round);
                        barrier.await();
                    }
                });
            }
            case "phaser" -> {
                int[] values = new int[3];
                Phaser phaser = new Phaser(values.length);
                threads(values.length, i -> () -> {
                    for (int round = 1; round <= 3; round++) {
                        values[i] = round;
                        phaser.arriveAndAwaitAdvance();
                        expect(values[(i + 1) % values.length], round);
                        phaser.arriveAndAwaitAdvance();
                    }
                });
            }
            case "latch" -> {
                int[] values = new int[3];
                CountDownLatch latch = new CountDownLatch(values.length);
                for (int i = 0; i < values.length; i++) {
                    int number = i;
                    new Thread(() -> {
                        values[number] = 1;
                        latch.countDown();
                    }).start();
                }
                latch.await();
                expect(IntStream.of(values).sum(), 3);
            }
            case "all-of" -> {
                int[] values = new int[2];
                CompletableFuture.allOf(CompletableFuture.runAsync(() -> values[0] = 1), CompletableFuture.runAsync(() -> values[1] = 2)).join();
                expect(values[0] + values[1], 3);
            }
            case "tasks" -> {
                ExecutorService pool = Executors.newCachedThreadPool();
                pool.submit(() -> data++).get();
                pool.submit(() -> data++).get();
                int[] values = new int[20];
                List<Future<?>> futures = new ArrayList<>();
                for (int i = 0; i < values.length; i++) {
                    int number = i;
                    futures.add(pool.submit(() -> {
                        synchronized (first) {
                            data++;
                        }
                        values[number] = 1;
                    }));
                }
                for (Future<?> future : futures) {
                    future.get();
                }
                expect(IntStream.of(values).sum(), values.length);
                pool.shutdown();
            }
            case "one-after-the-other" -> {
                ExecutorService pool = Executors.newSingleThreadExecutor();
                ByChance.threads(() -> pool.execute(() -> data++), () -> pool.execute(() -> data++));
                pool.execute(() -> data++);
                expect(pool.submit(() -> data).get(), 3);
                pool.shutdown();
                pool.awaitTermination(1, TimeUnit.MINUTES);
                expect(data, 3);
            }
            case "thread-local" -> {
                ThreadLocal<Box> boxes = ThreadLocal.withInitial(Box::new);
                ExecutorService pool = Executors.newFixedThreadPool(2);
                List<Future<?>> futures = new ArrayList<>();
                for (int i = 0; i < 8; i++) {
                    futures.add(pool.submit(() -> boxes.get().value++));
                }
                for (Future<?> future : futures) {
                    future.get();
                }
                pool.shutdown();
            }
            case "streams" -> {
                List<Box> boxes = IntStream.range(0, 100).parallel().mapToObj(i -> {
                    Box box = new Box();
                    box.value = i;
                    return box;
                }).filter(box -> box.value % 2 == 0).collect(Collectors.toList());
                expect(boxes.parallelStream().mapToInt(box -> box.value).sum(), 2450);
            }
            case "timer" -> {
                CountDownLatch latch = new CountDownLatch(2);
                Timer timer = new Timer(true);
                for (int i = 0; i < 2; i++) {
                    timer.schedule(new TimerTask() {
                        @Override
                        public void run() {
                            data++;
                            latch.countDown();
                        }
                    }, 1);
                }
                latch.await();
                expect(data, 2);
            }
            case "future-under-lock" -> {
                ExecutorService pool = Executors.newFixedThreadPool(2);
                Future<?> future = pool.submit(() -> {
                    synchronized (second) {
                        data++;
                    }
                });
                synchronized (first) {
                    future.get();
                    data++;
                }
                pool.shutdown();
            }
            case "initialisers" -> {
                Left.number();
                ByChance.threads(Left::number, Right::number, Alone::number, Alone::number);
            }
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }
}
