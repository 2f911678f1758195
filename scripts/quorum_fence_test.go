package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestG10_WriteBackRaisesOnly(t *testing.T) {
	s, n := start(t)
	ctx := bounded(t)
	write := func(owner string, last int64) bool {
		t.Helper()
		ours, err := n.WriteFence(ctx, "k", owner, last, time.Hour)
		require.NoError(t, err)
		return ours
	}
	acquired(t, n, "k", ownA)
	for _, c := range []struct{ last, want int64 }{
		{41, 41}, // none yet
		{41, 41}, // repeated
		{40, 41}, {9, 41}, {1, 41},
		{100, 100}, // and not as texts are compared
		{1795218662303123, 1795218662303123},
		{1795218662303122, 1795218662303123},
		{1795218662303124, 1795218662303124}, // all digits count
	} {
		require.True(t, write(ownA, c.last))
		require.Equal(t, c.want, counterValue(t, s), c.last)
	}
	a, err := n.AcquireFenced(ctx, "k", ownA, lease, *fencingHour)
	require.NoError(t, err)
	require.Greater(t, a.Fence, int64(1795218662303124-1))

	// An older hold's number must not stand where a newer one gives its own back.
	s.Do(t, "SET", token, "50")
	before := state(t, s)
	require.False(t, write(ownB, 60))
	require.False(t, write(ownA[:len(ownA)-1], 60))
	require.Equal(t, before, state(t, s))
	s.Do(t, "DEL", "k", token)
	require.False(t, write(ownA, 60))
	require.Empty(t, state(t, s))
}

func TestWriteBackExpiry(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	write := func(last int64, expiry time.Duration) int64 {
		t.Helper()
		ours, err := n.WriteFence(bounded(t), "k", ownA, last, expiry)
		require.NoError(t, err)
		require.True(t, ours)
		return number(t, s, "PTTL", token)
	}
	hour := time.Hour.Milliseconds()
	require.InDelta(t, hour, write(10, time.Hour), slackMillis)
	require.InDelta(t, 2*hour, write(11, 2*time.Hour), slackMillis)
	require.InDelta(t, 2*hour, write(11, time.Hour), slackMillis, "nothing to raise")
	require.EqualValues(t, -1, write(12, 0))
	s.Do(t, "SET", token, "41") // Java's
	require.EqualValues(t, -1, write(42, time.Hour), "Java's counter never gets an expiry")
	s.Do(t, "DEL", token)
	require.EqualValues(t, -1, write(1, 0))
}

// A number that is written back is given back by its holder only, and only down to
// the last that was used.
func TestG10_WriteBackAndGivingBack(t *testing.T) {
	s, n := start(t)
	ctx := bounded(t)
	acquired(t, n, "k", ownA)
	_, err := n.WriteFence(ctx, "k", ownA, 1<<52, time.Hour)
	require.NoError(t, err)
	released(t, n, ownA, 1<<52-5)
	require.EqualValues(t, 1<<52-5, counterValue(t, s))
	a := fenced(t, n, ownB, *fencingHour)
	require.EqualValues(t, 1<<52-4, a.Fence)
}

func TestWriteBackOnWhatIsNoCounter(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	for _, foreign := range [][]string{{"SET", token, "x"}, {"SET", token, ""}, {"LPUSH", token, "1"}} {
		s.Do(t, "DEL", token)
		s.Do(t, foreign...)
		before := state(t, s)
		_, err := n.WriteFence(bounded(t), "k", ownA, 1, 0)
		require.Error(t, err)
		require.Equal(t, Refused, OutcomeOf(err), err)
		require.Equal(t, before, state(t, s))
	}
}
