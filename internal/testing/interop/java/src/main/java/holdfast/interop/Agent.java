package holdfast.interop;

import com.google.gson.Gson;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * A Java program that locks with Redisson as it is told: lines of JSON on standard input ({@link Command}), and for
 * each of them one on standard output ({@link Answer}), in the order in which they are done. It ends with its input.
 *
 * <p>Arguments: the address of Redis as host:port, or those of a Redis Cluster with commas between, and the lease of
 * locks that are renewed, in milliseconds.
 */
public final class Agent {
    private static final Gson JSON = new Gson();

    private final PrintStream out;
    private final Locks locks;
    private final Work work;
    private final Map<String, Worker> workers = new ConcurrentHashMap<>();

    private Agent(RedissonClient redisson, PrintStream out) {
        this.out = out;
        this.locks = new Locks(redisson);
        this.work = new Work(locks);
    }

    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // whatever a library prints is no answer
        Agent agent = new Agent(Redisson.create(config(args[0], Long.parseLong(args[1]))), out);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            agent.take(JSON.fromJson(line, Command.class));
        }
        Runtime.getRuntime().halt(0); // the parent is gone
    }

    /** What an application would set to share locks are the addresses; the rest keeps the process small. */
    private static Config config(String addresses, long lease) {
        Config config = new Config();
        config.setLockWatchdogTimeout(lease);
        config.setCodec(StringCodec.INSTANCE); // locks do not use it
        config.setThreads(2);
        config.setNettyThreads(2);
        String[] urls = Arrays.stream(addresses.split(",")).map(a -> "redis://" + a).toArray(String[]::new);
        if (urls.length > 1) {
            config.useClusterServers()
                    .addNodeAddress(urls)
                    .setMasterConnectionMinimumIdleSize(1)
                    .setMasterConnectionPoolSize(16)
                    .setSubscriptionConnectionMinimumIdleSize(1);
            return config;
        }
        config.useSingleServer()
                .setAddress(urls[0])
                .setConnectionMinimumIdleSize(1)
                .setConnectionPoolSize(16)
                .setSubscriptionConnectionMinimumIdleSize(1);
        return config;
    }

    /** Hands a command to its thread; what concerns threads themselves is done at once. */
    private void take(Command c) {
        switch (c.op()) {
            case "ping" -> say(Answer.of(c, true, 0, null));
            case "interrupt" -> say(Answer.of(c, worker(c).interrupt(), 0, null));
            case "stop" -> {
                work.stop();
                say(Answer.of(c, true, 0, null));
            }
            default -> worker(c).executor.submit(() -> say(answer(c)));
        }
    }

    private Worker worker(Command c) {
        return workers.computeIfAbsent(c.thread(), Worker::new);
    }

    private Answer answer(Command c) {
        try {
            return c.op().equals("work") ? work.carryOut(c) : locks.carryOut(c);
        } catch (InterruptedException e) {
            return Answer.failed(c, "interrupted");
        } catch (IllegalMonitorStateException e) {
            return Answer.failed(c, "not the owner");
        } catch (IOException | RuntimeException e) { // a call to Redis may have been interrupted
            return Answer.failed(c, e.getCause() instanceof InterruptedException ? "interrupted" : e.toString());
        }
    }

    private void say(Answer a) {
        out.println(JSON.toJson(a)); // one write, under the stream's own lock
    }

    /** A thread that carries out its commands one after another. */
    private static final class Worker {
        final ExecutorService executor;
        private volatile Thread thread;

        Worker(String name) {
            executor = Executors.newSingleThreadExecutor(run -> thread = new Thread(run, name));
        }

        /** False: it has not had a command yet. */
        boolean interrupt() {
            Thread running = thread;
            if (running != null) {
                running.interrupt();
            }
            return running != null;
        }
    }
}
