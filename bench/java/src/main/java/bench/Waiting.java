package bench;

import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.HdrHistogram.Histogram;
import org.redisson.api.RLock;

/**
 * Threads that wait for a key that another client holds, like the goroutines of waiting.go.
 * Bytes are those of the heap, less the heap of as many threads that are parked.
 */
final class Waiting implements Agent.Job {
    private final Task task;
    private final RLock held;
    private final Threads threads = new Threads();
    private final double bytes;
    private final Histogram waits = Result.newWaits(); // guarded by itself
    private volatile long released;

    Waiting(Task task, RLock held, Supplier<RLock> lock) throws InterruptedException {
        this.task = task;
        this.held = held;
        long bare = parked();
        ask(1, lock);
        long before = Threads.heap();
        ask(task.count(), lock);
        bytes = (double) (Threads.heap() - before - bare) / task.count();
    }

    private void ask(int n, Supplier<RLock> lock) throws InterruptedException {
        for (int i = 0; i < n; i++) {
            RLock mine = lock.get();
            threads.start(() -> {
                mine.lock();
                long had = System.nanoTime();
                synchronized (waits) {
                    waits.recordValue(had - released);
                }
                mine.unlock();
            });
        }
        Thread.sleep(500 + n); // until they certainly wait
    }

    /** The heap of as many threads that are parked. */
    private long parked() throws InterruptedException {
        long before = Threads.heap();
        CountDownLatch over = new CountDownLatch(1);
        Threads all = new Threads();
        for (int i = 0; i < task.count(); i++) {
            all.start(over::await);
        }
        Thread.sleep(500);
        long used = Threads.heap() - before;
        over.countDown();
        all.join(Long.MAX_VALUE);
        return used;
    }

    @Override
    public Result work(double rate) throws InterruptedException {
        released = System.nanoTime();
        held.unlock();
        int left = threads.join(released + task.duration());
        double took = (System.nanoTime() - released) / 1e6;
        Result r = new Result();
        r.figures.put(left > 0 ? "not served" : "ms to serve all", left > 0 ? (double) left : took);
        r.figures.put("heap bytes/waiter", bytes);
        r.all = task.count() + 1;
        synchronized (waits) {
            return r.waits(waits);
        }
    }
}
