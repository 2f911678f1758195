package bench;

import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import org.HdrHistogram.Histogram;
import org.redisson.api.RLock;

/** A flash sale, with the numbers of sale.go. A thread of a pool serves each customer. */
final class Sale implements Agent.Job {
    private static final int KEYS = 10_000;
    private static final double LAW = 1.1;
    private static final long SECTION = 200_000;
    private static final int CROWD = 5000;

    private final ExecutorService pool = Executors.newCachedThreadPool(Threads::thread);
    private final Function<String, RLock> locks;
    private final long duration;
    private final double[] law = new double[KEYS]; // by key: the share of all keys up to this one

    Sale(Task task, Function<String, RLock> locks) {
        this.locks = locks;
        duration = task.duration();
        Arrays.setAll(law, i -> Math.pow(1 + i, -LAW));
        Arrays.parallelPrefix(law, Double::sum);
        double sum = law[KEYS - 1];
        Arrays.setAll(law, i -> law[i] / sum);
    }

    @Override
    public Result work(double rate) throws InterruptedException {
        Day day = new Day();
        boolean served = day.open(rate);
        Result r = new Result();
        if (!served) {
            r.figures.put("not served", 1.0);
        }
        synchronized (day.waits) {
            r.all = (int) day.waits.getTotalCount();
            return r.waits(day.waits);
        }
    }

    @Override
    public void close() {
        pool.shutdownNow();
    }

    /** One rate. */
    private final class Day {
        final AtomicInteger crowd = new AtomicInteger();
        final AtomicIntegerArray inside = new AtomicIntegerArray(KEYS);
        final Histogram waits = Result.newWaits(); // guarded by itself
        final Threads failures = new Threads();

        /** Lets customers come. It returns false if more waited than CROWD allows. */
        boolean open(double rate) throws InterruptedException {
            Random random = new Random(1);
            long begun = System.nanoTime();
            boolean served = true;
            for (int i = 0; i < (int) (rate * duration / 1e9) && served; i++) {
                long due = begun + (long) (i / rate * 1e9);
                for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
                served = crowd.incrementAndGet() <= CROWD;
                if (served) {
                    int at = Arrays.binarySearch(law, random.nextDouble());
                    int key = Math.min(at < 0 ? -at - 1 : at, KEYS - 1);
                    pool.execute(() -> failures.attempt(() -> customer(key, due)));
                } else {
                    crowd.decrementAndGet();
                }
            }
            for (long limit = System.nanoTime() + Threads.PATIENCE; crowd.get() > 0; Thread.sleep(1)) {
                if (System.nanoTime() > limit) {
                    if (served) {
                        throw Threads.stuck();
                    }
                    return false; // a crowd that patience is too short for
                }
            }
            failures.check();
            return served;
        }

        private void customer(int key, long due) throws InterruptedException {
            try {
                RLock lock = locks.apply("sku:" + key);
                lock.lock();
                try {
                    long had = System.nanoTime();
                    if (!inside.compareAndSet(key, 0, 1)) {
                        throw Threads.broken();
                    }
                    TimeUnit.NANOSECONDS.sleep(SECTION);
                    inside.set(key, 0);
                    synchronized (waits) {
                        waits.recordValue(had - due);
                    }
                } finally {
                    lock.unlock();
                }
            } finally {
                crowd.decrementAndGet();
            }
        }
    }
}
