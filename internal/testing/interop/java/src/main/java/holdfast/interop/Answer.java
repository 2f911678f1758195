package holdfast.interop;

/**
 * One line of standard output, one for each command.
 *
 * @param id      that of the command
 * @param ok      whether it was done, or is so
 * @param number  what was asked for: a token, a count, milliseconds
 * @param text    what was asked for: an owner
 * @param error   why it failed; null: it did not
 * @param time    System.nanoTime() when it was done
 */
record Answer(long id, boolean ok, long number, String text, String error, long time) {

    static Answer of(Command c, boolean ok, long number, String text) {
        return new Answer(c.id(), ok, number, text, null, System.nanoTime());
    }

    static Answer failed(Command c, String error) {
        return new Answer(c.id(), false, 0, null, error, System.nanoTime());
    }
}
