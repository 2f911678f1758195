package bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.redisson.api.RLock;

/**
 * Threads that wait for a key that another client holds, as waiting.go has goroutines
 * do. Bytes are of the heap, less those of as many threads that are parked.
 */
final class Waiting implements Job {
    private final RLock held;
    private final List<Thread> threads = new ArrayList<>();
    private final int waiters;
    private final long duration;
    private final double bytes;
    private final Result result = new Result();
    private volatile long released;
    private volatile Throwable failure;

    Waiting(Task task, RLock held, Supplier<RLock> lock) throws InterruptedException {
        this.held = held;
        waiters = task.count();
        duration = task.duration();
        held.lock(10, TimeUnit.MINUTES);
        long bare = parked();
        ask(1, lock);
        long before = Memory.heap();
        ask(waiters, lock);
        bytes = (double) (Memory.heap() - before - bare) / waiters;
    }

    private void ask(int n, Supplier<RLock> lock) throws InterruptedException {
        for (int i = 0; i < n; i++) {
            RLock mine = lock.get();
            Thread t = Memory.thread(() -> {
                try {
                    mine.lock();
                    served();
                    mine.unlock();
                } catch (Throwable e) {
                    failure = e;
                }
            });
            t.start();
            threads.add(t);
        }
        Thread.sleep(500 + n); // until they surely wait
    }

    private void served() {
        long had = System.nanoTime();
        synchronized (result) {
            result.waits.recordValue(had - released);
        }
    }

    /** The heap of as many threads that wait for nothing. */
    private long parked() throws InterruptedException {
        long before = Memory.heap();
        CountDownLatch over = new CountDownLatch(1);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < waiters; i++) {
            Thread t = Memory.thread(() -> {
                try {
                    over.await();
                } catch (InterruptedException e) {
                    failure = e;
                }
            });
            t.start();
            all.add(t);
        }
        Thread.sleep(500);
        long used = Memory.heap() - before;
        over.countDown();
        for (Thread t : all) {
            t.join();
        }
        return used;
    }

    @Override
    public Result work() throws InterruptedException {
        released = System.nanoTime();
        held.unlock();
        long limit = released + duration;
        for (Thread t : threads) {
            t.join(Math.max(1, (limit - System.nanoTime()) / 1_000_000));
        }
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
        double took = (System.nanoTime() - released) / 1e6;
        long left = threads.stream().filter(Thread::isAlive).count();
        result.figures.put(left > 0 ? "not served" : "ms to serve all", left > 0 ? (double) left : took);
        result.figures.put("heap bytes/waiter", bytes);
        result.all = threads.size();
        return result;
    }
}
