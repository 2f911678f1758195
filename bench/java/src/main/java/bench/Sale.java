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

/** A flash sale at rising rates, with the numbers of sale.go; each customer is served by a thread of a pool. */
final class Sale implements Job {
    private static final int KEYS = 10_000;
    private static final double LAW = 1.1;
    private static final long SECTION = 200_000;
    private static final long LIMIT = TimeUnit.MILLISECONDS.toNanos(100);
    private static final int CROWD = 5000;
    private static final double FIRST = 500;
    private static final double GROWTH = 1.4;
    private static final double LAST = 200_000;

    private final ExecutorService pool = Executors.newCachedThreadPool(Memory::thread);
    private final Function<String, RLock> locks;
    private final long each; // how long one rate lasts
    private final double[] law = new double[KEYS]; // the share of all keys up to one

    Sale(Task task, Function<String, RLock> locks) {
        this.locks = locks;
        each = task.duration() / rates();
        double sum = 0;
        for (int i = 0; i < KEYS; i++) {
            sum += Math.pow(1 + i, -LAW);
            law[i] = sum;
        }
        for (int i = 0; i < KEYS; i++) {
            law[i] /= sum;
        }
    }

    private static int rates() {
        int n = 0;
        for (double rate = FIRST; rate < LAST; rate *= GROWTH) {
            n++;
        }
        return n;
    }

    /** One rate. */
    private final class Day {
        final AtomicInteger crowd = new AtomicInteger();
        final AtomicIntegerArray inside = new AtomicIntegerArray(KEYS);
        final Histogram waits = Load.newWaits(); // guarded by itself
        volatile Throwable failure;

        /** Lets customers come; false if so many waited that not all were let in. */
        boolean open(double rate) throws InterruptedException {
            Random random = new Random(1);
            long begun = System.nanoTime();
            boolean served = true;
            for (int i = 0; i < (int) (rate * each / 1e9); i++) {
                long due = begun + (long) (i / rate * 1e9);
                for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                    LockSupport.parkNanos(left);
                }
                if (crowd.incrementAndGet() > CROWD) {
                    crowd.decrementAndGet();
                    served = false;
                    break;
                }
                int at = Arrays.binarySearch(law, random.nextDouble());
                int key = Math.min(at < 0 ? -at - 1 : at, KEYS - 1);
                pool.execute(() -> customer(key, due));
            }
            for (long limit = System.nanoTime() + Load.PATIENCE; crowd.get() > 0; Thread.sleep(1)) {
                if (System.nanoTime() > limit) {
                    if (served) {
                        throw new IllegalStateException("some still waited 10s after the end");
                    }
                    return false; // so many that they cannot be served in patience, either
                }
            }
            if (failure != null) {
                throw new IllegalStateException(failure);
            }
            return served;
        }

        private void customer(int key, long due) {
            try {
                RLock lock = locks.apply("sku:" + key);
                lock.lock();
                try {
                    long had = System.nanoTime();
                    if (!inside.compareAndSet(key, 0, 1)) {
                        failure = new IllegalStateException("exclusion is broken: sections overlapped");
                    }
                    TimeUnit.NANOSECONDS.sleep(SECTION);
                    inside.set(key, 0);
                    synchronized (waits) {
                        waits.recordValue(had - due);
                    }
                } finally {
                    lock.unlock();
                }
            } catch (Throwable e) {
                failure = e;
            } finally {
                crowd.decrementAndGet();
            }
        }
    }

    @Override
    public Result work() throws InterruptedException {
        Result r = new Result();
        r.figures.put("cycles/s", 0.0);
        for (double rate = FIRST; rate < LAST; rate *= GROWTH) {
            Day day = new Day();
            boolean served = day.open(rate);
            long p99;
            synchronized (day.waits) {
                p99 = day.waits.getValueAtPercentile(99);
                r.all += (int) day.waits.getTotalCount();
                if (served) {
                    r.figures.put("p99 ms at " + (int) rate + "/s", p99 / 1e6);
                }
                if (rate == FIRST) {
                    r.figures.put("p99 ms at the first rate", p99 / 1e6);
                }
                if (!served || p99 > LIMIT) {
                    break;
                }
                r.figures.put("cycles/s", rate);
                r.waits.reset();
                r.waits.add(day.waits);
            }
        }
        return r;
    }

    @Override
    public void close() {
        pool.shutdownNow();
    }
}
