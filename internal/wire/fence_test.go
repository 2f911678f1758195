package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

const token = "redisson_lock_token:{k}"

func fenced(t testing.TB, n *Redis, owner string, f Fencing) AcquireReply {
	t.Helper()
	a := must(n.Acquire(bounded(t), fencedBy(f, asking("k", owner))))(t)
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

func TestG10_RepeatGetsLargerNumbers(t *testing.T) {
	s, n := start(t)
	first := fenced(t, n, ownA, fencingHour)
	until := expiry(t, s, "k")
	require.Greater(t, fenced(t, n, ownA, fencingHour).Fence, first.FenceEnd)
	require.Equal(t, until, expiry(t, s, "k"))
}

func TestG10_ReservationStaysNearTheClock(t *testing.T) {
	s, n := start(t)
	const reserve = 1_000_000
	for i := range 20 { // each keeps all its numbers
		a := fenced(t, n, ownA, Fencing{Reserve: reserve, Expiry: time.Hour})
		require.True(t, i > 0 || a.FenceEnd-a.Fence+1 == reserve)
		require.Less(t, a.FenceEnd, serverMicros(t, s)+reserve)
		must(n.Release(bounded(t), ReleaseRequest{Key: "k", Owner: ownA}))(t)
	}
}

// A clock beyond all numbers costs fences as long as it is wrong, and leaves nothing behind.
func TestG10_F34_ClockBeyondItsNumbers(t *testing.T) {
	s := redistest.StartWithClock(t)
	n := NewRedis(s.Client(t), RedisSettings{})
	settings := settingsOf(clientA)
	settings.Fencing = Fencing{Reserve: 1, Expiry: time.Hour}
	f := NewFair(n, settings)
	for _, acquire := range []func(owner string) (AcquireReply, error){
		func(owner string) (AcquireReply, error) {
			return n.Acquire(bounded(t), fencedBy(settings.Fencing, asking("k", owner)))
		},
		func(owner string) (AcquireReply, error) {
			return f.Acquire(bounded(t), asking("k", owner))
		},
	} {
		s.SetClock(240*365*24*time.Hour, 1)
		requireRefused(t, "beyond the year 2255", errOf(acquire(ofA(1))))
		require.Zero(t, number(t, s, "EXISTS", "k", token))
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
	plain := func(owner string) AcquireReply { return fenced(t, r.redis, owner, fencingHour) }
	rw := NewRWLock(r.redis, clientA)
	ctx := bounded(t)
	for name, way := range map[string]struct {
		acquire func(owner string) AcquireReply
		release func(owner string, last int64) (ours bool)
	}{
		"plain": {plain, func(owner string, last int64) bool {
			return must(r.redis.Release(ctx, ReleaseRequest{Key: "k", Owner: owner, LastFence: last}))(t).Ours
		}},
		"each": {plain, func(owner string, last int64) bool {
			return must(end(r.redis, ctx, ReleaseRequest{Key: "k", Owner: owner, LastFence: last}))(t).Ours
		}},
		"fair": {r.acquire, func(owner string, last int64) bool {
			return must(r.of(owner).Release(ctx, fairHold("k", owner, last)))(t).Ours
		}},
		"fair each": {r.acquire, func(owner string, last int64) bool {
			return must(each(ctx, r.of(owner).ReleaseEach, fairHold("k", owner, last)))(t).Ours
		}},
		"rwlock": {func(owner string) AcquireReply {
			return must(rw.Acquire(ctx, RWLockAcquireRequest{AcquireRequest: fencedBy(fencingHour, asking("k", writer(owner)))}))(t)
		}, func(owner string, last int64) bool {
			return must(rw.Release(ctx, RWLockReleaseRequest{ReleaseRequest: ReleaseRequest{Key: "k", Owner: writer(owner), LastFence: last}}))(t).Ours
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r.s.Do(t, "FLUSHALL")
			requireCounter := func(value int64, d time.Duration) {
				t.Helper()
				require.Equal(t, value, number(t, r.s, "GET", token))
				lasts(t, r.s, token, d)
			}
			a := way.acquire(ofA(1))
			require.False(t, way.release(ofB(1), a.Fence-1))
			requireCounter(a.FenceEnd, time.Hour) // a stranger gives nothing back
			require.True(t, way.release(ofA(1), a.FenceEnd+100))
			requireCounter(a.FenceEnd, time.Hour) // never raised

			a = way.acquire(ofA(2))
			r.s.Do(t, "PEXPIRE", token, "1000000")
			require.True(t, way.release(ofA(2), a.Fence-1))
			requireCounter(a.Fence-1, 1000*time.Second) // giving back keeps the expiry
			a = way.acquire(ofA(3))
			requireCounter(a.FenceEnd, time.Hour)
			r.s.Do(t, "DEL", token)
			require.True(t, way.release(ofA(3), a.Fence-1))
			require.Zero(t, number(t, r.s, "EXISTS", token), "never created")

			r.s.Do(t, "SET", token, "41") // Java's never gets an expiry
			a = way.acquire(ofA(4))
			require.Greater(t, a.Fence, int64(41))
			requireCounter(a.FenceEnd, -1)
			require.True(t, way.release(ofA(4), 42))
			requireCounter(42, -1)

			for _, foreign := range [][]string{{"SET", token, "not a number"}, {"LPUSH", token, "1"}} {
				r.s.Do(t, "DEL", token)
				a = way.acquire(ofA(5))
				r.s.Do(t, "DEL", token)
				r.s.Do(t, foreign...)
				before := state(t, r.s)[token]
				require.True(t, way.release(ofA(5), a.Fence-1))
				require.Equal(t, before, state(t, r.s)[token], "what is not a counter is left alone")
			}
		})
	}
	r.s.Do(t, "FLUSHALL")
	fenced(t, r.redis, ownA, Fencing{Reserve: 10})
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
		require.Equal(t, []int64{count, number(t, r.s, "GET", token)}, []int64{end - first + 1, end})
		last = end
	}
	released := func(count int64, owner string, served ...string) Grant { // whose lock is granted by a message
		t.Helper()
		r.release(owner, served...)
		messages := r.messages()
		require.Len(t, messages, 1)
		_, message, _ := strings.Cut(messages[0], " ")
		g, ok := ParseGrant("k", message)
		require.True(t, ok)
		reserves(count, g.Fence, g.FenceEnd)
		return g
	}
	for range 2 { // repeated
		a := r.acquire(ofA(1))
		reserves(1, a.Fence, a.FenceEnd)
	}
	r.waits(ofA(2), ofB(1), ofB(2), ofC(1))
	g := r.release(ofA(1)).Grant
	reserves(1, g.Fence, g.FenceEnd)
	require.Equal(t, []string{ofB(2)}, released(10, ofA(2)).Members)
	r.s.Do(t, "DEL", token)
	released(1, ofB(1), ofB(2))
	a := must(r.of(ofC(1)).Confirm(bounded(t), asking("k", ofC(1)), Grant{}))(t)
	reserves(1, a.Fence, a.FenceEnd)
	r.waits(ofA(3))
	last += 3_600_000_000
	r.s.Do(t, "SET", token, decimal(last)) // ahead of the clock
	ahead := last
	require.Equal(t, ahead+1, released(1, ofC(1)).Fence)
}

// A hold that is confirmed has the numbers that came with its grant, if nobody has had others since, and the clock has
// not passed them. A grant that cannot be sent reserves none.
func TestG10_NumbersOfGrantsThatAreNotTrusted(t *testing.T) {
	const reserve = 900_000_000 // 15 minutes
	r := newHarness(t, fencing(reserve), func(s *FairSettings) { s.Members = 3 })
	r.acquire(ofA(1))
	r.waits(ofB(1), ofB(2), ofC(1), ofC(2))
	r.release(ofA(1))
	_, message, _ := strings.Cut(r.messages()[0], " ")
	g, ok := ParseGrant("k", message)
	require.True(t, ok)
	require.Equal(t, g.Fence+reserve-1, g.FenceEnd)
	confirm := func(g Grant) AcquireReply {
		t.Helper()
		return must(r.of(ofB(1)).Confirm(bounded(t), asking("k", ofB(1)), g))(t)
	}
	for range 2 { // repeated
		require.Equal(t, AcquireReply{OK: true, Fence: g.Fence, FenceEnd: g.FenceEnd}, confirm(g))
		require.Equal(t, g.FenceEnd, number(t, r.s, "GET", token))
	}
	another := confirm(Grant{})
	require.Greater(t, another.Fence, g.FenceEnd)
	require.Greater(t, confirm(g).Fence, another.FenceEnd, "another hold may have been in between")
	require.Greater(t, confirm(Grant{Fence: 1, FenceEnd: 9e15}).Fence, another.FenceEnd, "forged")
	require.Less(t, number(t, r.s, "GET", token), int64(9e15))
	r.s.Do(t, "SET", token, "42") // of an hour ago, as after a failover
	passed := confirm(Grant{Fence: 40, FenceEnd: 42})
	require.Greater(t, passed.Fence, g.Fence)
	require.Equal(t, passed.Fence+reserve-1, passed.FenceEnd, "for its run")

	r.s.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	last := number(t, r.s, "GET", token)
	r.release(ofB(1), ofB(2))
	r.requireFree()
	require.Equal(t, last, number(t, r.s, "GET", token))
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
		require.Equal(t, c.want, number(t, s, "GET", token), c.last)
		lasts(t, s, token, c.lasts, c.last)
	}
	require.Greater(t, fenced(t, n, ownA, fencingHour).Fence, int64(1795218662303126))

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
		requireRefused(t, "", errOf(n.WriteFence(bounded(t), "k", ownA, 1, 0)))
		require.Equal(t, before, state(t, s))
	}
	s.Do(t, "DEL", "k", token)
	require.False(t, write(ownA, 60, 0))
	require.Empty(t, state(t, s))
}
