import java.io.IOException;
import org.redisson.Redisson;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** Sells from the stock until none is left: Seller ADDRESS LOCK STOCK. */
class Seller {
    public static void main(String[] args) {
        Thread parent = new Thread(() -> {
            try {
                System.in.read(); // returns when the Go side closes it or dies
            } catch (IOException e) { // then it is gone as well
            }
            Runtime.getRuntime().halt(1);
        });
        parent.setDaemon(true);
        parent.start();

        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + args[0]).setTimeout(20_000);
        RedissonClient redisson = Redisson.create(config);
        RLock lock = redisson.getFairLock(args[1]);
        RBucket<String> stock = redisson.getBucket(args[2], StringCodec.INSTANCE);
        System.out.println("ready");
        int sold = 0;
        for (boolean more = true; more; ) {
            lock.lock();
            try { // a read and a write: without the lock, items would be sold twice
                int left = Integer.parseInt(stock.get());
                more = left > 0;
                if (more) {
                    stock.set(String.valueOf(left - 1));
                    sold++;
                }
            } finally {
                lock.unlock();
            }
        }
        redisson.shutdown();
        System.out.println(sold);
    }
}
