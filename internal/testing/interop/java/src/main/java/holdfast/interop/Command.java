package holdfast.interop;

import java.util.List;

/**
 * One line of standard input. Fields that an operation does not need are left out.
 *
 * @param id       comes back with the answer
 * @param op       what is to be done, see {@link Locks} and {@link Agent}
 * @param thread   name of the thread that does it: to Redisson another thread is another owner
 * @param kind     plain, fair, fenced, read or write
 * @param key      name of the lock
 * @param patience how long to wait, in milliseconds; null: not at all
 * @param lease    milliseconds; null: renewed by the watchdog
 * @param keys     of a work: names of the locks
 * @param file     of a work: where its records go
 * @param name     of a work: that of this process in the records
 */
record Command(long id, String op, String thread, String kind, String key, Long patience, Long lease,
               List<String> keys, String file, String name) {
}
