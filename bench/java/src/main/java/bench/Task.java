package bench;

/**
 * What one process is told, as the Go side writes it: fields in one line, with a
 * space between them. Times are in nanoseconds; a lease of 0 is Redisson's default.
 * The last field is a path, which may be empty.
 */
record Task(String address, String library, String role, int process, int processes, int threads, int count,
            boolean hot, boolean refused, long section, long warm, long lead, long duration, long lease, String inside) {

    static Task parse(String line) {
        String[] f = line.split(" ", 15);
        return new Task(f[0], f[1], f[2], Integer.parseInt(f[3]), Integer.parseInt(f[4]), Integer.parseInt(f[5]),
                Integer.parseInt(f[6]), f[7].equals("true"), f[8].equals("true"), Long.parseLong(f[9]), Long.parseLong(f[10]),
                Long.parseLong(f[11]), Long.parseLong(f[12]), Long.parseLong(f[13]), f[14]);
    }

    /** The load by which a process warms up. */
    Task warming() {
        return new Task(address, library, "load", process, processes, threads, count, hot, refused, section, 0, 0, warm, lease, "");
    }

    /** The key of one thread. */
    String key(int thread) {
        if (hot) {
            return "hot";
        }
        return refused ? "tried" : "own:" + thread;
    }
}
