package bench;

import java.lang.management.ManagementFactory;

/** What this process uses, and threads that use little. */
final class Memory {
    /** As much as Redisson's calls need, and 10,000 of them fit into any machine. */
    private static final long STACK = 256 * 1024;

    private Memory() {
    }

    /** Bytes of living objects, after a collection. */
    static long heap() {
        System.gc();
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    static Thread thread(Runnable what) {
        Thread t = new Thread(null, what, "bench", STACK);
        t.setDaemon(true);
        return t;
    }
}
