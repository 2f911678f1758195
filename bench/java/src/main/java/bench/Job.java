package bench;

/** Work that is ready to begin once it has been made. Closing it undoes what was made for it. */
interface Job extends AutoCloseable {
    Result work() throws Exception;

    @Override
    default void close() throws Exception {
    }
}
