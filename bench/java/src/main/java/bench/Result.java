package bench;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.HdrHistogram.Histogram;

/** What one process tells, with the names that the Go side reads. */
final class Result {
    int cycles;
    int all;
    long gap;
    long section;
    double cpu;
    long at;
    final List<Integer> shares = new ArrayList<>();
    final Histogram waits = Load.newWaits();
    final Map<String, Double> figures = new LinkedHashMap<>();

    String json() {
        String named = figures.entrySet().stream().map(f -> "\"" + f.getKey() + "\":" + f.getValue()).collect(Collectors.joining(","));
        return "{\"Cycles\":" + cycles + ",\"All\":" + all + ",\"Shares\":" + shares + ",\"Gap\":" + gap
                + ",\"Section\":" + section + ",\"CPU\":" + cpu + ",\"Waits\":\"" + encoded() + "\",\"At\":" + at
                + ",\"Figures\":{" + named + "}}";
    }

    static Result at(Instant when) {
        Result r = new Result();
        r.at = when.getEpochSecond() * 1_000_000_000L + when.getNano();
        return r;
    }

    static String failure(Throwable e) {
        return "{\"Failure\":\"" + text(e) + "\"}";
    }

    /** What went wrong, fit for a string of JSON. */
    static String text(Throwable e) {
        Throwable why = e.getCause() == null ? e : e.getCause();
        String text = String.valueOf(why.getMessage() == null ? why : why.getMessage());
        return text.replaceAll("[\"\\\\\\p{Cntrl}]", " ");
    }

    private String encoded() {
        ByteBuffer buffer = ByteBuffer.allocate(waits.getNeededByteBufferCapacity());
        int length = waits.encodeIntoCompressedByteBuffer(buffer);
        return Base64.getEncoder().encodeToString(Arrays.copyOf(buffer.array(), length));
    }
}
