package bench;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/** The answer of one process, as in agent.go. */
final class Result {
    int cycles;
    int all;
    long gap;
    long section;
    double CPU;
    long at;
    String waits;
    String failure;
    final List<Integer> shares = new ArrayList<>();
    final Map<String, Double> figures = new LinkedHashMap<>();

    static Histogram newWaits() {
        return new Histogram(100, TimeUnit.MINUTES.toNanos(10), 2);
    }

    Result waits(Histogram all) {
        ByteBuffer buffer = ByteBuffer.allocate(all.getNeededByteBufferCapacity());
        int length = all.encodeIntoCompressedByteBuffer(buffer);
        waits = Base64.getEncoder().encodeToString(Arrays.copyOf(buffer.array(), length));
        return this;
    }

    static Result at(Instant when) {
        Result r = new Result();
        r.at = when.getEpochSecond() * 1_000_000_000L + when.getNano();
        return r;
    }

    static Result failure(Throwable e) {
        Result r = new Result();
        Throwable why = e.getCause() == null ? e : e.getCause();
        r.failure = String.valueOf(why.getMessage() == null ? why : why.getMessage());
        return r;
    }
}
