package bench;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Threads that work together. If one fails, all have failed. */
final class Threads {
    /** How much longer than planned something may take. */
    static final long PATIENCE = TimeUnit.SECONDS.toNanos(30); // as in load.go

    /** Enough for Redisson's calls, and small enough for 10,000 threads on any machine. */
    private static final long STACK = 256 * 1024;

    private final List<Thread> all = new ArrayList<>();
    private volatile Throwable failure;

    /** What one thread does. */
    interface Body {
        void run() throws Exception;
    }

    static Thread thread(Runnable what) {
        Thread t = new Thread(null, what, "bench", STACK);
        t.setDaemon(true);
        return t;
    }

    void start(Body body) {
        Thread t = thread(() -> attempt(body));
        t.start();
        all.add(t);
    }

    /** Runs the body and keeps its failure. */
    void attempt(Body body) {
        try {
            body.run();
        } catch (Throwable e) {
            failure = e;
        }
    }

    boolean failed() {
        return failure != null;
    }

    void check() {
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
    }

    /** Waits for their end until limit at most, and returns how many have not ended. */
    int join(long limit) throws InterruptedException {
        for (Thread t : all) {
            t.join(Math.max(1, (limit - System.nanoTime()) / 1_000_000));
        }
        check();
        return (int) all.stream().filter(Thread::isAlive).count();
    }

    static IllegalStateException stuck() {
        return new IllegalStateException("some still waited 30s after the end");
    }

    static IllegalStateException broken() {
        return new IllegalStateException("exclusion is broken: sections overlapped");
    }

    /** Bytes of living objects, after a collection. */
    static long heap() {
        System.gc();
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }
}
