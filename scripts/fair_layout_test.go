package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What Java looks at is Redisson's, byte for byte, with scores by the server's
// clock; what it does not look at vanishes, or expires.
func TestFairLayout(t *testing.T) {
	r := newHarness(t)
	for _, c := range []struct{ key, queue, scores, heartbeats, inbox string }{
		{"sku:42", "redisson_lock_queue:{sku:42}", "redisson_lock_timeout:{sku:42}", "holdfast_heartbeat:{sku:42}",
			"redisson_lock__channel:{sku:42}:" + clientB},
		{"{sku}:42", "redisson_lock_queue:{sku}:42", "redisson_lock_timeout:{sku}:42", "holdfast_heartbeat:{sku}:42",
			"redisson_lock__channel:{sku}:42:" + clientB},
	} {
		keys := func(want ...string) {
			t.Helper()
			m := r.s.Do(t, "KEYS", "*")
			got, err := m.AsStrSlice()
			require.NoError(t, err)
			require.ElementsMatch(t, want, got)
		}
		text := func(command ...string) []string {
			t.Helper()
			m := r.s.Do(t, command...)
			all, err := m.AsStrSlice()
			require.NoError(t, err)
			return all
		}
		a, b, ctx := r.of(clientA), r.of(clientB), bounded(t)
		r.subscribe(c.inbox)
		_, err := a.Acquire(ctx, c.key, ofA(1), lease)
		require.NoError(t, err)
		keys(c.key)
		require.Equal(t, []string{ofA(1), "1"}, append(text("HKEYS", c.key), text("HVALS", c.key)...))

		e, err := b.Enter(ctx, c.key, ofB(2), ofB(1))
		require.NoError(t, err)
		require.Equal(t, 30*time.Second, e.Distance)
		keys(c.key, c.queue, c.scores, c.heartbeats)
		require.Equal(t, []string{ofB(2), ofB(1)}, text("LRANGE", c.queue, "0", "-1"))
		require.Equal(t, []string{clientB}, text("HKEYS", c.heartbeats))
		for _, owner := range []string{ofB(1), ofB(2)} {
			m := r.s.Do(t, "ZSCORE", c.scores, owner)
			score, err := m.AsFloat64()
			require.NoError(t, err)
			require.InDelta(t, serverMillis(t, r.s)+30_000, score, slackMillis)
		}

		_, err = a.Release(ctx, c.key, ofA(1), 0, false)
		require.NoError(t, err)
		require.Equal(t, []string{ofB(2), "1"}, append(text("HKEYS", c.key), text("HVALS", c.key)...))
		r.requireSaid(c.inbox + " " + ofB(2) + " 90000 0 0 for " + c.key)
		_, err = b.Leave(ctx, c.key, 0, ofB(1), ofB(2))
		require.NoError(t, err)
		keys(c.heartbeats)
		r.s.Do(t, "FLUSHALL")
	}
}

// All works with any bytes as a key.
func TestF8_AnyBytesAreAFairKey(t *testing.T) {
	r := newHarness(t)
	for _, key := range []string{"{", "}", "{}", "a{b}c", "{a", "a}b{c", "\r\n", "a\x00b", "\xff\xfe", "*", "KEYS[1]", "'", " 1", long(1024)} {
		a, b, ctx := r.of(clientA), r.of(clientB), bounded(t)
		r.subscribe(b.Inbox(key))
		_, err := a.Acquire(ctx, key, ofA(1), lease)
		require.NoError(t, err)
		_, err = b.Enter(ctx, key, ofB(1))
		require.NoError(t, err)
		_, err = a.Release(ctx, key, ofA(1), 0, true)
		require.NoError(t, err)
		r.requireSaid(b.Inbox(key) + " " + ofB(1) + " 90000 0 0 for " + key)
		h, waiting, err := a.Inspect(ctx, key)
		require.NoError(t, err)
		require.Equal(t, ofB(1), h.Owner)
		require.Zero(t, waiting)
		r.s.Do(t, "FLUSHALL")
	}
}
