package bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.redisson.api.RLock;

/** Many keys that are held and renewed. A few threads take them, as an owner may hold many. */
final class Keeping implements Agent.Job {
    private static final int THREADS = 64;

    private final CountDownLatch over = new CountDownLatch(1);
    private final Threads threads = new Threads();
    private final long duration;
    private final double bytes;

    Keeping(Task task, Function<String, RLock> lock) throws InterruptedException {
        duration = task.duration();
        long before = Threads.heap();
        CountDownLatch taken = new CountDownLatch(THREADS);
        for (int first = 0; first < THREADS; first++) {
            int from = first;
            threads.start(() -> {
                List<RLock> mine = new ArrayList<>();
                try {
                    for (int i = from; i < task.count() && !threads.failed(); i += THREADS) {
                        RLock l = lock.apply("held:" + i);
                        l.lock();
                        mine.add(l);
                    }
                } finally {
                    taken.countDown();
                }
                over.await();
                mine.clear(); // until now they were reachable
            });
        }
        taken.await();
        threads.check();
        bytes = (double) (Threads.heap() - before) / task.count();
    }

    @Override
    public Result work(double rate) throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(duration);
        threads.check();
        Result r = new Result();
        r.figures.put("bytes/lease", bytes);
        return r;
    }

    @Override
    public void close() {
        over.countDown();
    }
}
