package bench;

import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** The two sides of a recovery, as recovery.go has them: each tells a time. */
final class Recovery {
    private Recovery() {
    }

    /** Holds the key until it is killed or told to unlock it; tells when it did that. */
    static Job hold(RLock lock) {
        lock.lock();
        return () -> {
            Instant released = Instant.now();
            lock.unlock();
            return Result.at(released);
        };
    }

    /** Waits for the key; tells when it had it. */
    static Job ask(Task task, RLock lock) throws InterruptedException {
        CompletableFuture<Instant> had = new CompletableFuture<>();
        Memory.thread(() -> {
            try {
                lock.lock();
                had.complete(Instant.now());
                lock.unlock();
            } catch (Throwable e) {
                had.completeExceptionally(e);
            }
        }).start();
        Thread.sleep(500);
        return () -> Result.at(had.get(task.duration(), TimeUnit.NANOSECONDS));
    }
}
