import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.AbstractQueuedSynchronizer;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** What orders threads here is inherited from the JDK by classes of the program, and called under their names. */
public class Inherited {
    static final class Guard extends ReentrantLock {
        private static final long serialVersionUID = 1;
        int value;
    }

    static final class Flag extends AtomicInteger {
        private static final long serialVersionUID = 1;
        int before;

        void raise() {
            before++;
            incrementAndGet();
        }
    }

    static final class Mailbox extends LinkedBlockingQueue<int[]> {
        private static final long serialVersionUID = 1;

        @Override
        public void put(int[] letter) throws InterruptedException {
            letter[0]++;
            super.put(letter);
        }
    }

    static final class Mutex extends AbstractQueuedSynchronizer {
        private static final long serialVersionUID = 1;
        int value;

        @Override
        protected boolean tryAcquire(int ignored) {
            return compareAndSetState(0, 1);
        }

        @Override
        protected boolean tryRelease(int ignored) {
            setState(0);
            return true;
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Guard guard = new Guard();
        Condition changed = guard.newCondition();
        Flag flag = new Flag();
        Mailbox mailbox = new Mailbox();
        Mutex mutex = new Mutex();
        int[] letter = new int[1];
        Thread other = new Thread(() -> {
            guard.lock();
            guard.value++;
            changed.signalAll();
            guard.unlock();
            flag.raise();
            mutex.acquire(1);
            mutex.value++;
            mutex.release(1);
            try {
                letter[0] = 1;
                mailbox.put(letter);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        });
        other.start();
        guard.lock();
        while (guard.value == 0) {
            changed.await();
        }
        guard.value++;
        guard.unlock();
        while (flag.get() == 0) {
            Thread.onSpinWait();
        }
        flag.before++;
        mutex.acquire(1);
        mutex.value++;
        mutex.release(1);
        if (mailbox.take()[0]++ != 2 || guard.value != 2 || flag.before != 2) {
            throw new AssertionError();
        }
        other.join();
    }
}
