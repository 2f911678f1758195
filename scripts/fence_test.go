package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

const token = "redisson_lock_token:{k}"

func fenced(t testing.TB, n *Node, owner string, f Fencing) Acquired {
	t.Helper()
	a, err := n.AcquireFenced(bounded(t), "k", owner, lease, f)
	require.NoError(t, err)
	require.True(t, a.OK)
	require.LessOrEqual(t, a.Fence, a.FenceEnd)
	return a
}

func released(t testing.TB, n *Node, owner string, lastFence int64) {
	t.Helper()
	r, err := n.Release(bounded(t), "k", owner, lastFence)
	require.NoError(t, err)
	require.True(t, r.Ours)
}

// serverMicros is the server's clock.
func serverMicros(t testing.TB, s *redistest.Server) int64 {
	t.Helper()
	m := s.Do(t, "TIME")
	parts, err := m.AsIntSlice()
	require.NoError(t, err)
	return parts[0]*1_000_000 + parts[1]
}

func counterValue(t testing.TB, s *redistest.Server) int64 {
	t.Helper()
	return number(t, s, "GET", token)
}

func TestG10_RepeatGetsLargerNumbers(t *testing.T) {
	s, n := start(t)
	first := fenced(t, n, ownA, Fencing{Reserve: 100, Expiry: time.Hour})
	until := expiry(t, s, "k")
	again := fenced(t, n, ownA, Fencing{Reserve: 100, Expiry: time.Hour})
	require.Greater(t, again.Fence, first.FenceEnd)
	require.Equal(t, until, expiry(t, s, "k"))
}

func TestG10_ReservationStaysNearTheClock(t *testing.T) {
	s, n := start(t)
	const reserve = 1_000_000
	a := fenced(t, n, ownA, Fencing{Reserve: reserve, Expiry: time.Hour})
	require.Equal(t, int64(reserve), a.FenceEnd-a.Fence+1)
	for range 20 {
		released(t, n, ownA, 0) // keeps all its numbers
		a = fenced(t, n, ownA, Fencing{Reserve: reserve, Expiry: time.Hour})
		require.Less(t, a.FenceEnd, serverMicros(t, s)+reserve)
	}
}

// Where the counter is ahead of the clock, as after many quick holds, a hold
// still gets one number.
func TestG10_CounterAheadOfTheClock(t *testing.T) {
	s, n := start(t)
	ahead := serverMicros(t, s) + 3_600_000_000
	s.Do(t, "SET", token, decimal(ahead))
	a := fenced(t, n, ownA, Fencing{Reserve: 1000})
	require.Equal(t, Acquired{OK: true, Fence: ahead + 1, FenceEnd: ahead + 1}, a)
	require.Equal(t, ahead+1, counterValue(t, s), "all digits are kept")
}

func TestFenceCounterExpiry(t *testing.T) {
	s, n := start(t)
	hour := Fencing{Reserve: 10, Expiry: time.Hour}
	a := fenced(t, n, ownA, hour)
	require.InDelta(t, time.Hour.Milliseconds(), number(t, s, "PTTL", token), slackMillis)
	s.Do(t, "PEXPIRE", token, "1000000")
	released(t, n, ownA, a.Fence)
	require.InDelta(t, 1000000, number(t, s, "PTTL", token), slackMillis, "giving back keeps the expiry")
	fenced(t, n, ownA, hour)
	require.InDelta(t, time.Hour.Milliseconds(), number(t, s, "PTTL", token), slackMillis)
	released(t, n, ownA, 0)

	fenced(t, n, ownA, Fencing{Reserve: 10})
	require.EqualValues(t, -1, number(t, s, "PTTL", token))
	released(t, n, ownA, 0)

	s.Do(t, "SET", token, "41") // Java's
	a = fenced(t, n, ownA, hour)
	require.Greater(t, a.Fence, int64(41))
	require.EqualValues(t, -1, number(t, s, "PTTL", token), "Java's counter never gets an expiry")
	released(t, n, ownA, a.Fence)
	require.EqualValues(t, -1, number(t, s, "PTTL", token))
}

func TestFenceGivenBackOnlyDownwardsAndByTheHolder(t *testing.T) {
	s, n := start(t)
	f := Fencing{Reserve: 10, Expiry: time.Hour}

	a := fenced(t, n, ownA, f)
	r, err := n.Release(bounded(t), "k", ownB, a.Fence)
	require.NoError(t, err)
	require.False(t, r.Ours)
	require.Equal(t, a.FenceEnd, counterValue(t, s), "a stranger gives nothing back")

	released(t, n, ownA, a.FenceEnd+100)
	require.Equal(t, a.FenceEnd, counterValue(t, s), "never raised")

	a = fenced(t, n, ownA, f)
	s.Do(t, "DEL", token)
	released(t, n, ownA, a.Fence)
	require.EqualValues(t, 0, number(t, s, "EXISTS", token), "never created")

	for _, kind := range [][]string{{"SET", token, "not a number"}, {"LPUSH", token, "1"}} {
		a = fenced(t, n, ownA, f)
		s.Do(t, "DEL", token)
		s.Do(t, kind...)
		before := state(t, s)[token]
		released(t, n, ownA, a.Fence)
		require.Equal(t, before, state(t, s)[token], "what is not a counter is left alone")
		s.Do(t, "DEL", token)
	}
}

func TestFenceCounterThatIsNoNumber(t *testing.T) {
	s, n := start(t)
	for _, value := range []string{"", "x", "-1", "1.5", "1e3", "0x10", " 1", "9000000000000001", "99999999999999999999"} {
		s.Do(t, "SET", token, value)
		before := state(t, s)
		_, err := n.AcquireFenced(bounded(t), "k", ownA, lease, Fencing{Reserve: 1})
		require.ErrorContains(t, err, "fence counter", value)
		require.Equal(t, Refused, OutcomeOf(err))
		require.Equal(t, before, state(t, s))
	}
}

// A clock beyond all numbers costs fences as long as it is wrong, and leaves nothing behind.
func TestG10_F34_ClockBeyondItsNumbers(t *testing.T) {
	s := redistest.StartWithClock(t)
	n := NewNode(s.Client(t))
	settings := settingsOf(clientA)
	settings.Fencing = Fencing{Reserve: 1, Expiry: time.Hour}
	for _, acquire := range []func(owner string) (Acquired, error){
		func(owner string) (Acquired, error) {
			return n.AcquireFenced(bounded(t), "k", owner, lease, Fencing{Reserve: 1, Expiry: time.Hour})
		},
		func(owner string) (Acquired, error) {
			return NewFair(n, settings).Acquire(bounded(t), "k", owner, lease)
		},
	} {
		s.SetClock(240*365*24*time.Hour, 1)
		_, err := acquire(ofA(1))
		require.ErrorContains(t, err, "beyond the year 2255")
		require.Equal(t, Refused, OutcomeOf(err))
		require.NotContains(t, state(t, s), "k")
		require.NotContains(t, state(t, s), token)
		s.SetClock(0, 1)
		a, err := acquire(ofA(2))
		require.NoError(t, err)
		require.True(t, a.OK)
		s.Do(t, "FLUSHALL")
	}
}
