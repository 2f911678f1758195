package bench;

import java.util.List;

/** An order to one process, as in agent.go. Times are in nanoseconds. A lease of 0 is Redisson's default. */
record Task(List<String> addrs, boolean cluster, String set, String library, String role, int goroutines, int count, boolean hot,
            int shared, long room, boolean try_, long section, String inside, long warm, long lead, long duration, long lease) {

    /** The load by which a process warms up. Its keys differ from the task's, on which other processes may be at work. */
    Task warming() {
        return new Task(addrs, cluster, set, library, "load", goroutines, count, hot, shared, room, try_, section, "", 0, 0, warm, lease);
    }

    /** At least 1: a cycle that shares with nobody. */
    public long room() {
        return Math.max(1, room);
    }

    /** The key of one thread. */
    String key(int thread) {
        return hot ? "hot" : try_ ? "tried" : "own:" + thread;
    }
}
