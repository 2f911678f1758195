package bench;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import java.util.logging.LogManager;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * One process of Redisson's. It reads a task, says when it is ready, reads when to
 * begin (ns since 1970), works, tells the result, reads an empty line, closes its
 * client and says so; then comes the next task. It ends with its input.
 */
public final class Agent {
    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));

    private Agent() {
    }

    public static void main(String[] args) throws Exception {
        LogManager.getLogManager().reset(); // netty's own, which knows no other way to be quiet
        try {
            for (String line = IN.readLine(); line != null; line = IN.readLine()) {
                if (!line.isEmpty()) {
                    carryOut(Task.parse(line));
                }
            }
        } catch (Exception e) {
            say("\"" + Result.text(e) + "\""); // instead of what was expected
            System.exit(1);
        }
        System.exit(0);
    }

    private static void carryOut(Task task) throws Exception {
        RedissonClient client = open(task);
        try (Job job = prepare(client, task)) {
            say("\"ready\"");
            String begin = IN.readLine();
            if (begin != null && !begin.isEmpty()) { // else it is to close at once
                say(work(job, Long.parseLong(begin)));
                IN.readLine();
            }
        }
        client.shutdown(0, 2, TimeUnit.SECONDS);
        say("\"closed\"");
    }

    /** Its pools are as large as those of the other rivals. */
    private static RedissonClient open(Task task) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + task.address()).setConnectionPoolSize(64)
                .setSubscriptionsPerConnection(50); // each waiter of a fair lock has a channel
        if (task.lease() > 0) {
            config.setLockWatchdogTimeout(task.lease() / 1_000_000);
        }
        return Redisson.create(config);
    }

    private static RLock lock(RedissonClient client, String library, String key) {
        return switch (library) {
            case "fair" -> client.getFairLock(key);
            case "spin" -> client.getSpinLock(key);
            default -> client.getLock(key);
        };
    }

    /** Makes a job, which gets a second client where the key is to be another's. */
    private static Job prepare(RedissonClient client, Task task) throws Exception {
        boolean two = task.refused() || task.role().equals("wait");
        RedissonClient second = two ? open(task) : null;
        RLock held = two ? lock(second, task.library(), task.key(0)) : null;
        if (task.refused()) {
            held.lock();
        }
        warm(client, task);
        Job job = job(client, task, held);
        return new Job() {
            @Override
            public Result work() throws Exception {
                return job.work();
            }

            @Override
            public void close() throws Exception {
                job.close();
                if (two) {
                    second.shutdown(0, 2, TimeUnit.SECONDS);
                }
            }
        };
    }

    private static Job job(RedissonClient client, Task task, RLock held) throws Exception {
        return switch (task.role()) {
            case "load" -> load(client, task)::run;
            case "wait" -> new Waiting(task, held, () -> lock(client, task.library(), task.key(0)));
            case "keep" -> new Keeping(task, key -> lock(client, task.library(), key));
            case "sale" -> new Sale(task, key -> lock(client, task.library(), key));
            case "hold" -> Recovery.hold(lock(client, task.library(), task.key(0)));
            case "ask" -> Recovery.ask(task, lock(client, task.library(), task.key(0)));
            default -> throw new IllegalArgumentException("no role " + task.role());
        };
    }

    /** It has mapped its file before it is said to be ready. */
    private static Load load(RedissonClient client, Task task) throws IOException {
        return new Load(task, i -> lock(client, task.library(), task.key(i)));
    }

    /** Other processes may be at work on the task's keys, so that these are others. */
    private static void warm(RedissonClient client, Task task) throws Exception {
        if (task.warm() > 0) {
            String prefix = "warm:" + ProcessHandle.current().pid() + ":";
            new Load(task.warming(), i -> lock(client, task.library(), task.refused() ? task.key(i) : prefix + task.key(i))).run();
        }
    }

    private static String work(Job job, long begin) {
        try {
            long now = System.currentTimeMillis() * 1_000_000;
            TimeUnit.NANOSECONDS.sleep(begin - now);
            long cpu = cpu();
            Result r = job.work();
            r.cpu = (cpu() - cpu) / 1e9;
            return r.json();
        } catch (Exception e) {
            return Result.failure(e);
        }
    }

    private static long cpu() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
