package bench;

import com.google.gson.FieldNamingPolicy;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.logging.LogManager;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * One process of Redisson's, with the protocol of agent.go: it reads a task, says when it is ready, reads when to begin
 * (ns since 1970) and at what rate, works, and writes the result. After an empty line it closes its clients, says so,
 * and reads the next task. It ends with its input.
 */
public final class Agent {
    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));
    private static final Gson JSON = new GsonBuilder()
            .setFieldNamingStrategy(f -> f.getName().equals("try_") ? "Try" : FieldNamingPolicy.UPPER_CAMEL_CASE.translateName(f))
            .create();

    /** Work that is ready to begin. Closing it undoes what was prepared for it. */
    interface Job extends AutoCloseable {
        Result work(double rate) throws Exception;

        @Override
        default void close() throws Exception {
        }
    }

    private final Task task;
    private final RedissonClient client;
    private RedissonClient other; // holds the key where another client must

    private Agent(Task task) {
        this.task = task;
        client = open(task);
    }

    public static void main(String[] args) throws Exception {
        LogManager.getLogManager().reset(); // nothing else silences netty
        try {
            for (String line = IN.readLine(); line != null; line = IN.readLine()) {
                new Agent(JSON.fromJson(line, Task.class)).carryOut();
            }
        } catch (Exception e) {
            say(Result.failure(e)); // in place of the expected answer
            System.exit(1);
        }
        System.exit(0);
    }

    private void carryOut() throws Exception {
        try (Job job = prepare()) {
            say(new Result());
            for (String begin = IN.readLine(); begin != null && !begin.isEmpty(); begin = IN.readLine()) {
                String[] when = begin.split(" ");
                TimeUnit.NANOSECONDS.sleep(Long.parseLong(when[0]) - System.currentTimeMillis() * 1_000_000);
                say(work(job, Double.parseDouble(when[1])));
            }
        }
        client.shutdown(0, 2, TimeUnit.SECONDS);
        if (other != null) {
            other.shutdown(0, 2, TimeUnit.SECONDS);
        }
        say(new Result());
    }

    private static Result work(Job job, double rate) {
        try {
            long cpu = cpu();
            Result r = job.work(rate);
            r.CPU = (cpu() - cpu) / 1e9;
            return r;
        } catch (Exception e) {
            return Result.failure(e);
        }
    }

    private static long cpu() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    private static void say(Result r) {
        System.out.println(JSON.toJson(r));
        System.out.flush();
    }

    /** The pools are as large as those of the other rivals. */
    private static RedissonClient open(Task task) {
        Config config = new Config();
        String[] urls = task.addrs().stream().map(a -> "redis://" + a).toArray(String[]::new);
        if (task.cluster()) {
            config.useClusterServers().addNodeAddress(urls).setMasterConnectionPoolSize(64).setSubscriptionsPerConnection(50);
        } else if (!task.set().isEmpty()) {
            config.useSentinelServers().setMasterName(task.set()).addSentinelAddress(urls).setMasterConnectionPoolSize(64)
                    .setSubscriptionsPerConnection(50);
        } else {
            config.useSingleServer().setAddress(urls[0]).setConnectionPoolSize(64)
                    .setSubscriptionsPerConnection(50); // each waiter of a fair lock has a channel
        }
        if (task.lease() > 0) {
            config.setLockWatchdogTimeout(task.lease() / 1_000_000);
        }
        return Redisson.create(config);
    }

    private RLock lock(RedissonClient client, String key) {
        return switch (task.library()) {
            case "fair" -> client.getFairLock(key);
            case "spin" -> client.getSpinLock(key);
            case "read/write" -> client.getReadWriteLock(key).writeLock();
            default -> client.getLock(key);
        };
    }

    private RLock lock(String key) {
        return lock(client, key);
    }

    /** A cycle that shares the key with nobody. */
    private Load.Turn alone(String key) {
        return task.try_() ? Load.Turn.refused(lock(key)) : Load.Turn.of(lock(key));
    }

    /** A cycle that others of these share the key with, except with a plain lock. */
    private Load.Turn shared(String key) {
        switch (task.library()) {
            case "read/write":
                return Load.Turn.of(client.getReadWriteLock(key).readLock());
            case "semaphore":
                RSemaphore semaphore = client.getSemaphore(key);
                semaphore.trySetPermits((int) task.room());
                return new Load.Turn(semaphore::acquire, semaphore::release);
            case "permits":
                RPermitExpirableSemaphore permits = client.getPermitExpirableSemaphore(key);
                permits.trySetPermits((int) task.room());
                String[] mine = new String[1];
                return new Load.Turn(() -> mine[0] = permits.acquire(30, TimeUnit.SECONDS), () -> permits.release(mine[0]));
            default:
                return alone(key);
        }
    }

    private Job prepare() throws Exception {
        RLock held = null;
        if (task.try_() || task.role().equals("wait")) {
            other = open(task);
            held = lock(other, task.key(0));
            held.lock(10, TimeUnit.MINUTES);
        }
        if (task.warm() > 0) {
            String prefix = task.try_() ? "" : "warm:" + ProcessHandle.current().pid() + ":";
            new Load(task.warming(), i -> alone(prefix + task.key(i)), i -> shared(prefix + task.key(i))).work(0);
        }
        return switch (task.role()) {
            case "load" -> new Load(task, i -> alone(task.key(i)), i -> shared(task.key(i)));
            case "wait" -> new Waiting(task, held, () -> lock(task.key(0)));
            case "keep" -> new Keeping(task, this::lock);
            case "sale" -> new Sale(task, this::lock);
            case "hold" -> hold(lock(task.key(0)));
            case "ask" -> ask(lock(task.key(0)));
            default -> throw new IllegalArgumentException("no role " + task.role());
        };
    }

    /** Holds the key until it is killed or told to unlock it. The result has the time of the unlock. */
    private static Job hold(RLock lock) {
        lock.lock();
        return rate -> {
            Instant released = Instant.now();
            lock.unlock();
            return Result.at(released);
        };
    }

    /** Waits for the key. The result has the time at which it had the key. */
    private Job ask(RLock lock) throws InterruptedException {
        CompletableFuture<Instant> had = new CompletableFuture<>();
        Threads.thread(() -> {
            try {
                lock.lock();
                had.complete(Instant.now());
                lock.unlock();
            } catch (Throwable e) {
                had.completeExceptionally(e);
            }
        }).start();
        Thread.sleep(500); // until it certainly waits
        return rate -> Result.at(had.get(task.duration(), TimeUnit.NANOSECONDS));
    }
}
