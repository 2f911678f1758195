package holdfast.interop;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.client.RedisTimeoutException;

/**
 * Takes and gives back locks until told to stop, and records each hold for the check of exclusion, in the format
 * that internal/testing/locktest/exclusion/records.go tells of. Redisson does not tell a holder that it has lost a lock. So a
 * hold is recorded only as far as Redis has confirmed it: when asked, or by the unlock of a plain lock.
 */
final class Work {
    private static final AtomicLong LAST = new AtomicLong();

    private final Locks locks;
    private volatile boolean stopped;

    Work(Locks locks) {
        this.locks = locks;
    }

    void stop() {
        stopped = true;
    }

    /** How many locks were kept until their unlock, and whether all were. */
    Answer carryOut(Command c) throws IOException, InterruptedException {
        long kept = 0;
        boolean all = true;
        try (OutputStream records = new FileOutputStream(c.file(), true)) {
            while (!stopped) {
                ThreadLocalRandom random = ThreadLocalRandom.current();
                String key = c.keys().get(random.nextInt(c.keys().size()));
                RLock lock = locks.get(c.kind(), key);
                Long fence = acquire(lock, random);
                if (fence == null) {
                    continue;
                }
                if (holdAndUnlock(c, key, lock, fence, records)) {
                    kept++;
                } else {
                    all = false;
                }
            }
        }
        return Answer.of(c, all, kept, null);
    }

    private boolean holdAndUnlock(Command c, String key, RLock lock, long fence, OutputStream records)
            throws IOException, InterruptedException {
        long sure = System.nanoTime();
        String id = c.name() + "-" + LAST.incrementAndGet();
        record(records, "G " + id + " " + key + " " + locks.owner() + " false " + fence + " false " + sure + " " + sure + " " + sure);
        ThreadLocalRandom random = ThreadLocalRandom.current();
        Thread.sleep(random.nextInt(10) == 0 ? random.nextInt(20) : 0);
        long now = System.nanoTime();
        boolean kept = lock.isHeldByCurrentThread();
        if (kept) {
            sure = now;
            record(records, "D " + id + " " + sure);
        }
        now = System.nanoTime();
        try {
            lock.unlock();
            if (kept && !c.kind().equals("fair")) { // the fair lock says so of one that has expired, too
                sure = now;
            }
        } catch (IllegalMonitorStateException e) {
            kept = false;
        }
        record(records, "E " + id + " " + sure);
        return kept;
    }

    /** In one of the ways that there are. The token of a fenced lock, 0 of another; null: not acquired. */
    private static Long acquire(RLock lock, ThreadLocalRandom random) throws InterruptedException {
        long patience = switch (random.nextInt(8)) {
            case 0 -> 0;
            case 1 -> random.nextInt(50);
            case 2 -> random.nextInt(1000);
            default -> -1;
        };
        if (lock instanceof RFencedLock fenced) {
            if (patience < 0) {
                return fenced.lockAndGetToken();
            }
            try {
                return fenced.tryLockAndGetToken(patience, TimeUnit.MILLISECONDS);
            } catch (RedisTimeoutException e) { // it could not subscribe within that time
                return null;
            }
        }
        if (patience < 0) {
            lock.lock();
            return 0L;
        }
        boolean got = patience == 0 ? lock.tryLock() : lock.tryLock(patience, TimeUnit.MILLISECONDS);
        return got ? 0L : null;
    }

    private static void record(OutputStream records, String line) throws IOException {
        records.write((line + "\n").getBytes(StandardCharsets.UTF_8)); // one write
    }
}
