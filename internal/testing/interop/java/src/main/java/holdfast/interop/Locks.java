package holdfast.interop;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/** The operations on locks, each called on the thread that is the owner. */
final class Locks {
    private final RedissonClient redisson;

    Locks(RedissonClient redisson) {
        this.redisson = redisson;
    }

    /** An object of its own for each command: Redisson's remembers the lease of the last one. */
    RLock get(String kind, String key) {
        return switch (kind) {
            case "plain" -> redisson.getLock(key);
            case "fair" -> redisson.getFairLock(key);
            case "fenced" -> redisson.getFencedLock(key);
            case "read" -> redisson.getReadWriteLock(key).readLock();
            case "write" -> redisson.getReadWriteLock(key).writeLock();
            default -> throw new IllegalArgumentException("kind " + kind);
        };
    }

    /** The field under which this thread holds locks. */
    String owner() {
        return redisson.getId() + ":" + Thread.currentThread().getId();
    }

    Answer carryOut(Command c) throws InterruptedException {
        RLock lock = get(c.kind(), c.key());
        switch (c.op()) {
            case "lock":
                return lock(c, lock);
            case "tryLock":
                return tryLock(c, lock);
            case "unlock":
                lock.unlock();
                return Answer.of(c, true, 0, null);
            case "forceUnlock":
                return Answer.of(c, lock.forceUnlock(), 0, null);
            case "held":
                return Answer.of(c, lock.isHeldByCurrentThread(), lock.getHoldCount(), owner());
            case "inspect":
                return inspect(c, lock);
            default:
                throw new IllegalArgumentException("op " + c.op());
        }
    }

    private Answer lock(Command c, RLock lock) throws InterruptedException {
        if (lock instanceof RFencedLock fenced) {
            return Answer.of(c, true, fenced.lockAndGetToken(), owner());
        }
        if (c.lease() == null) {
            lock.lockInterruptibly();
        } else {
            lock.lockInterruptibly(c.lease(), TimeUnit.MILLISECONDS);
        }
        return Answer.of(c, true, 0, owner());
    }

    private Answer tryLock(Command c, RLock lock) throws InterruptedException {
        long lease = c.lease() == null ? -1 : c.lease();
        if (lock instanceof RFencedLock fenced) {
            // Not tryLockAndGetToken(): that one waits for ever.
            long patience = c.patience() == null ? 0 : c.patience();
            Long token = fenced.tryLockAndGetToken(patience, lease, TimeUnit.MILLISECONDS);
            return Answer.of(c, token != null, token == null ? 0 : token, owner());
        }
        boolean got = c.patience() == null ? lock.tryLock() : lock.tryLock(c.patience(), lease, TimeUnit.MILLISECONDS);
        return Answer.of(c, got, 0, owner());
    }

    /** Whether the lock is held, by which owner, and how often that has entered. */
    private Answer inspect(Command c, RLock lock) {
        Map<String, String> fields = redisson.<String, String>getMap(c.key(), StringCodec.INSTANCE).readAllMap();
        if (fields.size() > 1) {
            throw new IllegalStateException("several owners: " + fields);
        }
        for (Map.Entry<String, String> field : fields.entrySet()) {
            String entries = field.getValue().split(" ", 2)[0]; // Go's label follows
            return Answer.of(c, lock.isLocked(), Long.parseLong(entries), field.getKey());
        }
        return Answer.of(c, lock.isLocked(), 0, null);
    }
}
