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
	a := must(n.AcquireFenced(bounded(t), "k", owner, lease, f))(t)
	require.True(t, a.OK)
	require.LessOrEqual(t, a.Fence, a.FenceEnd)
	return a
}

// serverMicros is the server's clock.
func serverMicros(t testing.TB, s *redistest.Server) int64 {
	t.Helper()
	m := s.Do(t, "TIME")
	parts := must(m.AsIntSlice())(t)
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
		must(n.Release(bounded(t), "k", ownA, 0))(t) // keeps all its numbers
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
		require.True(t, must(acquire(ofA(2)))(t).OK)
		s.Do(t, "FLUSHALL")
	}
}

func fencing(reserve int64) func(*FairSettings) {
	return func(s *FairSettings) { s.Fencing = Fencing{Reserve: reserve, Expiry: time.Hour} }
}

// lasts requires that a key expires after about that time; negative: never.
func lasts(t *testing.T, s *redistest.Server, key string, d time.Duration, about ...any) {
	t.Helper()
	left := number(t, s, "PTTL", key)
	if d < 0 {
		require.EqualValues(t, -1, left, about...)
		return
	}
	require.InDelta(t, d.Milliseconds(), left, slackMillis, about...)
}

// The counter is ours and Java's: an acquire sets its expiry unless it has none, and a release
// only ever lowers it to a number in use, by the holder's word, and keeps its expiry.
func TestFenceCounter(t *testing.T) {
	r := newHarness(t, fencing(10))
	plain := func(owner string) Acquired { return fenced(t, r.node, owner, *fencingHour) }
	inOrder := func(owner string) Acquired { return r.acquire(owner) }
	for name, way := range map[string]struct {
		acquire func(owner string) Acquired
		release func(owner string, last int64) (ours bool)
	}{
		"plain": {plain, func(owner string, last int64) bool {
			return must(r.node.Release(bounded(t), "k", owner, last))(t).Ours
		}},
		"each": {plain, func(owner string, last int64) bool {
			return must(end(r.node, bounded(t), Ending{Key: "k", Owner: owner, LastFence: last}))(t).Ours
		}},
		"fair": {inOrder, func(owner string, last int64) bool {
			return must(r.of(owner).Release(bounded(t), "k", owner, last, false))(t).Ours
		}},
		"fair each": {inOrder, func(owner string, last int64) bool {
			return must(one(func(said []Result[Passed]) error {
				return r.of(owner).ReleaseEach(bounded(t), []FairHold{{Hold{"k", owner}, last}}, said)
			}))(t).Ours
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r.s.Do(t, "FLUSHALL")
			a := way.acquire(ofA(1))
			lasts(t, r.s, token, time.Hour)
			require.False(t, way.release(ofB(1), a.Fence-1))
			require.Equal(t, a.FenceEnd, counterValue(t, r.s), "a stranger gives nothing back")
			require.True(t, way.release(ofA(1), a.FenceEnd+100))
			require.Equal(t, a.FenceEnd, counterValue(t, r.s), "never raised")

			a = way.acquire(ofA(2))
			r.s.Do(t, "PEXPIRE", token, "1000000")
			require.True(t, way.release(ofA(2), a.Fence-1))
			require.Equal(t, a.Fence-1, counterValue(t, r.s))
			lasts(t, r.s, token, 1000*time.Second, "giving back keeps the expiry")
			a = way.acquire(ofA(3))
			lasts(t, r.s, token, time.Hour)
			r.s.Do(t, "DEL", token)
			require.True(t, way.release(ofA(3), a.Fence-1))
			require.Zero(t, number(t, r.s, "EXISTS", token), "never created")

			r.s.Do(t, "SET", token, "41") // Java's
			a = way.acquire(ofA(4))
			require.Greater(t, a.Fence, int64(41))
			lasts(t, r.s, token, -1, "Java's counter never gets an expiry")
			require.True(t, way.release(ofA(4), 42))
			require.EqualValues(t, 42, counterValue(t, r.s))
			lasts(t, r.s, token, -1)

			for _, kind := range [][]string{{"SET", token, "not a number"}, {"LPUSH", token, "1"}} {
				r.s.Do(t, "DEL", token)
				a = way.acquire(ofA(5))
				r.s.Do(t, "DEL", token)
				r.s.Do(t, kind...)
				before := state(t, r.s)[token]
				require.True(t, way.release(ofA(5), a.Fence-1))
				require.Equal(t, before, state(t, r.s)[token], "what is not a counter is left alone")
			}
		})
	}
	r.s.Do(t, "FLUSHALL")
	fenced(t, r.node, ownA, Fencing{Reserve: 10})
	lasts(t, r.s, token, -1)
}

// A hold gets as many numbers as it asks for only if its grant names a run; a counter ahead of the
// clock moves on by one.
func TestG10_FencesOfGrants(t *testing.T) {
	r := newHarness(t, fencing(10), func(s *FairSettings) { s.Members = 3 })
	last := int64(0)
	reserves := func(count, first, end int64) {
		t.Helper()
		require.Greater(t, first, last)
		require.Equal(t, count, end-first+1)
		require.Equal(t, end, counterValue(t, r.s))
		last = end
	}
	granted := func() Grant {
		t.Helper()
		said := r.said()
		require.Len(t, said, 1)
		g, ok := ParseGrant("k", said[0][len(r.of(ofA(1)).Inbox("k"))+1:])
		require.True(t, ok)
		return g
	}
	for range 2 { // repeated
		a := r.acquire(ofA(1))
		reserves(1, a.Fence, a.FenceEnd)
	}
	r.waits(ofA(2), ofB(1), ofB(2), ofC(1))
	g := r.release(ofA(1)).Grant
	reserves(1, g.Fence, g.FenceEnd)
	r.release(ofA(2))
	g = granted()
	require.Equal(t, []string{ofB(2)}, g.Members)
	reserves(10, g.Fence, g.FenceEnd)
	r.s.Do(t, "DEL", token)
	r.release(ofB(1), ofB(2))
	g = granted()
	reserves(1, g.Fence, g.FenceEnd)
	a := must(r.of(ofC(1)).Confirm(bounded(t), "k", ofC(1), lease))(t)
	reserves(1, a.Fence, a.FenceEnd)
	r.waits(ofA(3))
	last += 3_600_000_000
	r.s.Do(t, "SET", token, decimal(last)) // ahead of the clock
	r.release(ofC(1))
	g = granted()
	require.Equal(t, last+1, g.Fence)
	reserves(1, g.Fence, g.FenceEnd)
}

// The number of a quorum raises the counter of a node, by the holder's word, and is given back
// like one that was reserved there.
func TestG10_WriteBack(t *testing.T) {
	s, n := start(t)
	write := func(owner string, last int64, expiry time.Duration) bool {
		t.Helper()
		return must(n.WriteFence(bounded(t), "k", owner, last, expiry))(t)
	}
	acquired(t, n, "k", ownA)
	for _, c := range []struct {
		last   int64
		expiry time.Duration
		want   int64
		lasts  time.Duration
	}{
		{41, time.Hour, 41, time.Hour}, // none yet
		{41, 2 * time.Hour, 41, time.Hour},
		{9, 2 * time.Hour, 41, time.Hour}, // and not as texts are compared
		{100, 2 * time.Hour, 100, 2 * time.Hour},
		{1795218662303123, time.Hour, 1795218662303123, time.Hour},
		{1795218662303122, time.Hour, 1795218662303123, time.Hour},
		{1795218662303124, time.Hour, 1795218662303124, time.Hour}, // all digits count
		{1795218662303125, 0, 1795218662303125, -1},
		{1795218662303126, time.Hour, 1795218662303126, -1}, // as Java's never gets an expiry
	} {
		require.True(t, write(ownA, c.last, c.expiry))
		require.Equal(t, c.want, counterValue(t, s), c.last)
		lasts(t, s, token, c.lasts, c.last)
	}
	a := fenced(t, n, ownA, *fencingHour)
	require.Greater(t, a.Fence, int64(1795218662303126))

	// An older hold's number must not stand where a newer one gives its own back.
	s.Do(t, "SET", token, "50")
	before := state(t, s)
	require.False(t, write(ownB, 60, 0))
	require.False(t, write(ownA[:len(ownA)-1], 60, 0))
	require.Equal(t, before, state(t, s))
	for _, foreign := range [][]string{{"SET", token, "x"}, {"SET", token, ""}, {"LPUSH", token, "1"}} {
		s.Do(t, "DEL", token)
		s.Do(t, foreign...)
		before := state(t, s)
		_, err := n.WriteFence(bounded(t), "k", ownA, 1, 0)
		require.Equal(t, Refused, OutcomeOf(err), err)
		require.Equal(t, before, state(t, s))
	}
	s.Do(t, "DEL", "k", token)
	require.False(t, write(ownA, 60, 0))
	require.Empty(t, state(t, s))
}
