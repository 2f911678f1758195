package bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.redisson.api.RLock;

/** Many keys that are held and renewed. They are taken by a few threads, as their owner may have many. */
final class Keeping implements Job {
    private static final int THREADS = 64;

    private final CountDownLatch over = new CountDownLatch(1);
    private final long duration;
    private final double bytes;
    private volatile Throwable failure;

    Keeping(Task task, Function<String, RLock> lock) throws InterruptedException {
        duration = task.duration();
        long before = Memory.heap();
        CountDownLatch taken = new CountDownLatch(THREADS);
        for (int first = 0; first < THREADS; first++) {
            int from = first;
            Memory.thread(() -> {
                List<RLock> mine = new ArrayList<>();
                try {
                    for (int i = from; i < task.count() && failure == null; i += THREADS) {
                        RLock l = lock.apply("held:" + i);
                        l.lock();
                        mine.add(l);
                    }
                    taken.countDown();
                    over.await();
                    mine.clear(); // until then they are kept
                } catch (Throwable e) {
                    failure = e;
                    taken.countDown();
                }
            }).start();
        }
        taken.await();
        fail();
        bytes = (double) (Memory.heap() - before) / task.count();
    }

    private void fail() {
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
    }

    @Override
    public Result work() throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(duration);
        fail();
        Result r = new Result();
        r.figures.put("bytes/lease", bytes);
        return r;
    }

    @Override
    public void close() {
        over.countDown();
    }
}
