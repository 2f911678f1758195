package holdfast.interop;

import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RScript;
import org.redisson.api.RedissonClient;
import org.redisson.client.RedisTimeoutException;
import org.redisson.client.codec.StringCodec;

/**
 * Takes and gives back locks until told to stop, and records each hold for the check of exclusion, in the format
 * that records_test.go tells of. Redisson does not tell a holder that it has lost a lock. So a hold is recorded only
 * as far as Redis has confirmed it: by a visit of the section, or by the unlock of a plain lock.
 */
final class Work {
    private static final AtomicLong LAST = new AtomicLong();

    private final RedissonClient redisson;
    private final Locks locks;
    private volatile boolean stopped;

    Work(RedissonClient redisson, Locks locks) {
        this.redisson = redisson;
        this.locks = locks;
    }

    void stop() {
        stopped = true;
    }

    Answer carryOut(Command c) throws IOException, InterruptedException {
        long done = 0;
        try (OutputStream records = new FileOutputStream(c.file(), true)) {
            while (!stopped) {
                if (once(c, records)) {
                    done++;
                }
            }
        }
        return Answer.of(c, true, done, null);
    }

    private boolean once(Command c, OutputStream records) throws IOException, InterruptedException {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        String key = c.keys().get(random.nextInt(c.keys().size()));
        RLock lock = locks.get(c.kind(), key);
        Long fence = acquire(lock, random);
        if (fence == null) {
            return false;
        }
        long from = System.nanoTime();
        String id = c.name() + "-" + LAST.incrementAndGet();
        record(records, "G " + id + " " + key + " " + fence + " " + from + " " + from);
        long entered = visit(key, true);
        Thread.sleep(random.nextInt(10) == 0 ? random.nextInt(20) : 0);
        long sure = System.nanoTime();
        long left = visit(key, false);
        boolean kept = entered >= 0 && left >= 0;
        if (kept) {
            record(records, "D " + id + " " + sure);
        } else {
            sure = from;
        }
        if (kept && entered != left) {
            record(records, "X " + id + " " + left);
        }
        long end = System.nanoTime();
        try {
            lock.unlock();
            if (kept && !c.kind().equals("fair")) { // the fair lock says so of one that has expired, too
                sure = end;
            }
        } catch (IllegalMonitorStateException e) {
            kept = false;
        }
        record(records, "E " + id + " " + sure);
        if (!kept) {
            record(records, "L " + id);
        }
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

    /** The count of visits of the section, or -1 if this thread does not hold the lock any more. */
    private long visit(String key, boolean enter) {
        return redisson.getScript(StringCodec.INSTANCE).eval(RScript.Mode.READ_WRITE,
                "if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end "
                        + "return redis.call('INCRBY', KEYS[2], ARGV[2])",
                RScript.ReturnType.VALUE, // of an integer a Long; LONG is not in all versions
                List.of(key, key.contains("{") ? "visits:" + key : "visits:{" + key + "}"), locks.owner(), enter ? "1" : "0");
    }

    private static void record(OutputStream records, String line) throws IOException {
        records.write((line + "\n").getBytes(StandardCharsets.UTF_8)); // one write
    }
}
