package bench;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import org.HdrHistogram.Histogram;
import org.redisson.api.RLock;

/** Threads that lock and unlock without a pause, as load.go has goroutines do. */
final class Load implements Agent.Job {
    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private final Task task;
    private final IntFunction<Turn> alone;
    private final IntFunction<Turn> shared;
    private final ByteBuffer inside; // sections of the one key that have begun and not ended, by their shares, in all processes that map the file
    private final CountDownLatch begin = new CountDownLatch(1);
    private final Threads threads = new Threads();
    private volatile boolean counts;
    private volatile boolean over;

    // Guarded by the lock that is measured, if all want one key. Volatile, as that lock means
    // nothing to Java's memory model.
    private volatile long last;
    private volatile long gap;

    /** How one thread takes a key, and gives it back. */
    record Turn(Threads.Body take, Threads.Body give) {
        static Turn of(RLock lock) {
            return new Turn(lock::lock, lock::unlock);
        }

        /** A try, which must be refused. */
        static Turn refused(RLock lock) {
            return new Turn(() -> {
                if (lock.tryLock()) {
                    throw new IllegalStateException("exclusion is broken: a key that is held was given to another");
                }
            }, () -> { });
        }
    }

    /** What one thread did. */
    private static final class Tally {
        int cycles;
        int all;
        long held;
        final Histogram waits = Result.newWaits();
    }

    Load(Task task, IntFunction<Turn> alone, IntFunction<Turn> shared) throws IOException {
        this.task = task;
        this.alone = alone;
        this.shared = shared;
        inside = map(task.inside());
    }

    /** The number in a file that other processes map as well. Without a path, the number is this process' own. */
    private static ByteBuffer map(String path) throws IOException {
        if (path.isEmpty()) {
            return ByteBuffer.allocateDirect(Long.BYTES).alignedSlice(Long.BYTES);
        }
        try (FileChannel file = FileChannel.open(Path.of(path), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return file.map(FileChannel.MapMode.READ_WRITE, 0, Long.BYTES);
        }
    }

    /** Works for the task's lead and then its duration. Only the latter is measured. */
    @Override
    public Result work(double rate) throws InterruptedException {
        List<Tally> tallies = new ArrayList<>();
        for (int i = 0; i < task.goroutines(); i++) {
            Turn one = alone.apply(i);
            Turn other = shared.apply(i);
            Tally mine = new Tally();
            tallies.add(mine);
            threads.start(() -> cycles(one, other, mine));
        }
        last = System.nanoTime();
        begin.countDown();
        TimeUnit.NANOSECONDS.sleep(task.lead());
        long started = System.nanoTime();
        counts = true;
        TimeUnit.NANOSECONDS.sleep(task.duration());
        over = true;
        if (threads.join(System.nanoTime() + Threads.PATIENCE) > 0) {
            throw Threads.stuck();
        }
        return sum(tallies, Math.max(gap, started + task.duration() - last));
    }

    private void cycles(Turn alone, Turn shared, Tally mine) throws Exception {
        begin.await();
        while (!over && !threads.failed()) {
            boolean shares = ThreadLocalRandom.current().nextInt(100) < task.shared();
            Turn turn = shares ? shared : alone;
            long asked = System.nanoTime();
            turn.take().run();
            try {
                section(mine, asked, shares ? 1 : task.room());
            } finally {
                turn.give().run();
            }
        }
    }

    private void section(Tally mine, long asked, long share) throws InterruptedException {
        long had = System.nanoTime();
        mine.all++;
        boolean counts = this.counts;
        if (counts) {
            mine.waits.recordValue(had - asked);
        }
        if (task.hot() && (long) LONG.getAndAdd(inside, 0, share) + share > task.room()) {
            throw Threads.broken();
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
            LONG.getAndAdd(inside, 0, -share);
        }
    }

    /** Lets the time of a section pass. It spins for a short one, to be exact. */
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

    private static Result sum(List<Tally> tallies, long longest) {
        Result r = new Result();
        Histogram waits = Result.newWaits();
        long held = 0;
        for (Tally t : tallies) {
            r.cycles += t.cycles;
            r.all += t.all;
            r.shares.add(t.cycles);
            waits.add(t.waits);
            held += t.held;
        }
        r.gap = longest;
        r.section = held / Math.max(r.cycles, 1);
        return r.waits(waits);
    }
}
