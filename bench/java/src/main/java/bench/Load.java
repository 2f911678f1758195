package bench;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.HdrHistogram.Histogram;
import org.redisson.api.RLock;

/** Threads that lock and unlock without a pause, as load.go has goroutines do. */
final class Load {
    /** How much longer than planned something may take. */
    static final long PATIENCE = TimeUnit.SECONDS.toNanos(10);

    private final Task task;
    private final IntFunction<RLock> locks;
    private final CountDownLatch begin = new CountDownLatch(1);
    private final Inside inside;
    private final List<Tally> tallies = new ArrayList<>();
    private volatile boolean counts;
    private volatile boolean over;
    private volatile Throwable failure;

    // Guarded by the lock that is measured, if all want one; volatile, as that lock is
    // none of Java's memory model.
    private volatile long last;
    private volatile long gap;

    /** What one thread did. */
    private static final class Tally {
        int cycles;
        int all;
        long held;
        final Histogram waits = newWaits();
    }

    Load(Task task, IntFunction<RLock> locks) throws IOException {
        this.task = task;
        this.inside = Inside.of(task.inside());
        this.locks = locks;
    }

    static Histogram newWaits() {
        return new Histogram(100, TimeUnit.MINUTES.toNanos(10), 2);
    }

    /** Works for the task's lead and its duration; the lead is not measured. */
    Result run() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < task.threads(); i++) {
            RLock lock = locks.apply(i);
            Tally mine = new Tally();
            tallies.add(mine);
            Thread t = new Thread(() -> work(lock, mine));
            t.setDaemon(true);
            t.start();
            threads.add(t);
        }
        last = System.nanoTime();
        begin.countDown();
        TimeUnit.NANOSECONDS.sleep(task.lead());
        long started = System.nanoTime();
        counts = true;
        TimeUnit.NANOSECONDS.sleep(task.duration());
        over = true;
        long limit = System.nanoTime() + PATIENCE;
        for (Thread t : threads) {
            t.join(Math.max(1, (limit - System.nanoTime()) / 1_000_000));
            if (t.isAlive()) {
                throw new IllegalStateException("some still waited 10s after the end");
            }
        }
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
        return sum(Math.max(gap, started + task.duration() - last));
    }

    private void work(RLock lock, Tally mine) {
        try {
            begin.await();
            while (!over) {
                long asked = System.nanoTime();
                if (task.refused()) {
                    if (lock.tryLock()) {
                        throw new IllegalStateException("exclusion is broken: a key that is held was given to another");
                    }
                    section(mine, asked);
                    continue;
                }
                lock.lock();
                try {
                    section(mine, asked);
                } finally {
                    lock.unlock();
                }
            }
        } catch (Throwable e) {
            failure = e;
            over = true;
        }
    }

    private void section(Tally mine, long asked) throws InterruptedException {
        long had = System.nanoTime();
        mine.all++;
        boolean counts = this.counts;
        if (counts) {
            mine.waits.recordValue(had - asked);
        }
        if (task.hot() && !inside.enter()) {
            throw new IllegalStateException("exclusion is broken: sections overlapped");
        }
        if (!over) {
            if (counts) {
                mine.cycles++;
            }
            if (counts && task.hot()) {
                gap = Math.max(gap, had - last);
            }
            pass();
            long end = System.nanoTime();
            mine.held += task.section() == 0 || !counts ? 0 : end - had;
            if (task.hot()) {
                last = end;
            }
        }
        if (task.hot()) {
            inside.leave();
        }
    }

    /** Lets the time of a section go by, that of a short one exactly, by spinning. */
    private void pass() throws InterruptedException {
        if (task.section() >= 1_000_000) {
            TimeUnit.NANOSECONDS.sleep(task.section());
            return;
        }
        long begin = System.nanoTime();
        while (System.nanoTime() - begin < task.section()) {
            Thread.onSpinWait();
        }
    }

    private Result sum(long longest) {
        Result r = new Result();
        long held = 0;
        for (Tally t : tallies) {
            r.cycles += t.cycles;
            r.all += t.all;
            r.shares.add(t.cycles);
            r.waits.add(t.waits);
            held += t.held;
        }
        r.gap = longest;
        r.section = held / Math.max(r.cycles, 1);
        return r;
    }
}
