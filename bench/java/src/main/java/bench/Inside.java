package bench;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** How many have a section of the one key, in all processes that map a file, as inside.go has it. */
final class Inside {
    private static final VarHandle LONG = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private final ByteBuffer count;

    private Inside(ByteBuffer count) {
        this.count = count;
    }

    /** Counts within this process if there is no path. */
    static Inside of(String path) throws IOException {
        if (path.isEmpty()) {
            return new Inside(ByteBuffer.allocateDirect(Long.BYTES).alignedSlice(Long.BYTES));
        }
        try (FileChannel file = FileChannel.open(Path.of(path), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            return new Inside(file.map(FileChannel.MapMode.READ_WRITE, 0, Long.BYTES));
        }
    }

    /** Tells whether nobody else is inside. */
    boolean enter() {
        return (long) LONG.getAndAdd(count, 0, 1L) == 0;
    }

    void leave() {
        LONG.getAndAdd(count, 0, -1L);
    }
}
