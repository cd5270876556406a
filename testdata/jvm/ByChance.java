import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
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
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.StampedLock;
import java.util.stream.IntStream;

/** Programs in which threads are kept apart only by what this run happened to do: they race, or wait for each other, in others. */
public class ByChance {
    interface Step {
        void run() throws Exception;
    }

    static int data;
    static final Object first = new Object();
    static final Object second = new Object();

    static void threads(Step... steps) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (Step step : steps) {
            Thread thread = new Thread(() -> {
                try {
                    step.run();
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    /** A thread writes before a step, and another reads after it, a little later. */
    static void around(Step one, Step other) throws Exception {
        threads(() -> {
            data = 1;
            one.run();
        }, () -> {
            Thread.sleep(60);
            other.run();
            if (data > 1) {
                throw new IllegalStateException();
            }
        });
    }

    static void pass(Semaphore semaphore) throws Exception {
        semaphore.acquire();
        data++;
        semaphore.release();
    }

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

    static class Parent {
        static final Parent ONE = new Child();

        static int number() {
            return 3;
        }
    }

    static class Child extends Parent {}

    static final class Lazy {
        static final int value = Integer.getInteger("ByChance", 7);

        static int number() {
            return value;
        }
    }

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "permits" -> {
                Semaphore two = new Semaphore(2);
                threads(() -> pass(two), () -> {
                    Thread.sleep(60);
                    pass(two);
                });
            }
            case "around-semaphore" -> {
                Semaphore one = new Semaphore(1);
                Step step = () -> {
                    one.acquire();
                    one.release();
                };
                around(step, step);
            }
            case "semaphores" -> {
                Semaphore one = new Semaphore(1);
                Semaphore other = new Semaphore(1);
                threads(() -> {
                    one.acquire();
                    other.acquire();
                    other.release();
                    one.release();
                }, () -> {
                    Thread.sleep(60);
                    other.acquire();
                    one.acquire();
                    one.release();
                    other.release();
                });
            }
            case "semaphore-and-lock" -> {
                Semaphore one = new Semaphore(1);
                threads(() -> {
                    one.acquire();
                    synchronized (first) {
                        data++;
                    }
                    one.release();
                }, () -> {
                    Thread.sleep(60);
                    synchronized (first) {
                        one.acquire();
                        one.release();
                    }
                });
            }
            case "around-map" -> {
                Map<String, String> map = new ConcurrentHashMap<>();
                around(() -> map.put("a", "1"), () -> map.put("b", "2"));
            }
            case "around-adder" -> {
                LongAdder adder = new LongAdder();
                around(adder::increment, adder::increment);
            }
            case "around-list" -> {
                List<Integer> list = Collections.synchronizedList(new ArrayList<>());
                around(() -> list.add(1), () -> list.add(2));
            }
            case "around-plain-list" -> {
                List<Integer> list = new ArrayList<>();
                Step step = () -> {
                    synchronized (first) {
                        list.add(1);
                    }
                };
                around(step, step);
            }
            case "around-plain-map" -> {
                Map<Thread, Integer> map = new HashMap<>();
                Step step = () -> {
                    synchronized (first) {
                        map.put(Thread.currentThread(), 1);
                    }
                };
                around(step, step);
            }
            case "around-stamp" -> {
                StampedLock lock = new StampedLock();
                Step step = () -> lock.unlockWrite(lock.writeLock());
                around(step, step);
            }
            case "around-class" -> around(Lazy::number, Lazy::number);
            case "stamp" -> {
                StampedLock lock = new StampedLock();
                Step step = () -> {
                    long stamp = lock.readLock();
                    data++;
                    lock.unlockRead(stamp);
                };
                threads(step, () -> {
                    Thread.sleep(60);
                    step.run();
                });
            }
            case "queue" -> {
                BlockingQueue<String> queue = new LinkedBlockingQueue<>();
                threads(() -> {
                    data = 1;
                    queue.add("token");
                }, () -> {
                    Thread.sleep(30);
                    queue.add("token");
                }, () -> {
                    Thread.sleep(90);
                    queue.take();
                    data++;
                });
            }
            case "exchanger" -> {
                Exchanger<Integer> exchanger = new Exchanger<>();
                threads(() -> {
                    data = 1;
                    exchanger.exchange(1);
                }, () -> exchanger.exchange(2), () -> {
                    Thread.sleep(90);
                    exchanger.exchange(3);
                }, () -> {
                    Thread.sleep(90);
                    exchanger.exchange(4);
                    data++;
                });
            }
            case "barrier" -> {
                CyclicBarrier barrier = new CyclicBarrier(2);
                threads(() -> {
                    data = 1;
                    barrier.await();
                }, barrier::await, () -> {
                    Thread.sleep(90);
                    barrier.await();
                }, () -> {
                    Thread.sleep(90);
                    barrier.await();
                    data++;
                });
            }
            case "latch" -> {
                CountDownLatch latch = new CountDownLatch(1);
                threads(latch::countDown, () -> {
                    Thread.sleep(30);
                    data = 1;
                    latch.countDown();
                }, () -> {
                    Thread.sleep(90);
                    latch.await();
                    data++;
                });
            }
            case "any-of" -> {
                CompletableFuture<Void> one = new CompletableFuture<>();
                CompletableFuture<Void> other = new CompletableFuture<>();
                CompletableFuture<Object> any = CompletableFuture.anyOf(one, other);
                threads(() -> one.complete(null), () -> {
                    Thread.sleep(30);
                    data = 1;
                    other.complete(null);
                }, () -> {
                    Thread.sleep(90);
                    any.join();
                    data++;
                });
            }
            case "completed-twice" -> {
                CompletableFuture<String> future = new CompletableFuture<>();
                threads(() -> future.complete("a"), () -> {
                    Thread.sleep(30);
                    data = 1;
                    future.complete("b");
                }, () -> {
                    Thread.sleep(90);
                    future.join();
                    data++;
                });
            }
            case "tasks" -> {
                ExecutorService pool = Executors.newCachedThreadPool();
                pool.execute(() -> data++);
                Thread.sleep(60);
                pool.execute(() -> data++);
                pool.shutdown();
                pool.awaitTermination(1, TimeUnit.MINUTES);
            }
            case "async-tasks" -> {
                CompletableFuture<Void> one = CompletableFuture.runAsync(() -> data++);
                CompletableFuture<Void> other = CompletableFuture.runAsync(() -> data++);
                one.join();
                other.join();
            }
            case "stream" -> IntStream.range(0, 100).parallel().forEach(i -> data++);
            case "timer" -> {
                Timer timer = new Timer(true);
                timer.schedule(new TimerTask() {
                    @Override
                    public void run() {
                        data++;
                    }
                }, 1);
                Thread.sleep(60);
                data++;
            }
            case "locks" -> {
                Map<String, String> map = new ConcurrentHashMap<>();
                threads(() -> {
                    synchronized (first) {
                        synchronized (second) {
                            data++;
                        }
                    }
                    map.put("a", "1");
                }, () -> {
                    Thread.sleep(60);
                    map.put("b", "2");
                    synchronized (second) {
                        synchronized (first) {
                            data++;
                        }
                    }
                });
            }
            case "future-under-lock" -> {
                ExecutorService pool = Executors.newFixedThreadPool(2);
                Future<?> future = pool.submit(() -> {
                    synchronized (first) {
                        data++;
                    }
                });
                Thread.sleep(60);
                synchronized (first) {
                    future.get();
                }
                pool.shutdown();
            }
            case "queue-under-lock" -> {
                BlockingQueue<String> queue = new LinkedBlockingQueue<>();
                threads(() -> {
                    synchronized (first) {
                        queue.add("x");
                    }
                }, () -> {
                    Thread.sleep(60);
                    synchronized (first) {
                        queue.take();
                    }
                });
            }
            case "latch-under-lock" -> {
                CountDownLatch latch = new CountDownLatch(1);
                threads(() -> {
                    synchronized (first) {
                        latch.countDown();
                    }
                }, () -> {
                    Thread.sleep(60);
                    synchronized (first) {
                        latch.await();
                    }
                });
            }
            case "initialisers" -> threads(Left::number, () -> {
                Thread.sleep(60);
                Right.number();
            });
            case "initialiser-of-superclass" -> threads(Parent::number, () -> {
                Thread.sleep(60);
                new Child();
            });
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }
}
