package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestG6_OnlyTheOwnerReleases(t *testing.T) {
	r := newHarness(t)
	r.follow(ofA(1), ofB(1))
	before := state(t, r.s)
	for _, stranger := range []string{ofA(10), ofA(2), ofB(1), ofB(2), ofA(1) + " "} {
		require.Equal(t, Passed{}, r.release(stranger))
	}
	r.leave(ofB(2))
	require.Equal(t, before, state(t, r.s))
	r.requireSaid()
}

func TestReleaseEndsAnyCountAndLeavesATombstoneIfInDoubt(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	_, err := r.node.Recount(bounded(t), "k", ofA(1), 7)
	require.NoError(t, err)
	require.Equal(t, Passed{Ours: true}, r.release(ofA(1)))
	r.requireFree()
	require.Equal(t, []Place{Waiting}, r.enter(ofA(1)).Places, "not in doubt: nothing keeps a late call out")
	p, err := r.of(ofA(1)).Release(bounded(t), "k", ofA(1), 0, true)
	require.NoError(t, err)
	require.True(t, p.Ours)
	require.Equal(t, []Place{Gone}, r.enter(ofA(1)).Places)
	r.requireFree()
}

// A grant names the owners of the same client that follow it, without a gap and up to
// a number.
func TestRunOfAGrant(t *testing.T) {
	r := newHarness(t, func(s *FairSettings) { s.Members = 2 })
	r.follow(ofC(1), ofA(1), ofA(2), ofB(1), ofA(3), ofA(4), ofA(5), ofA(6))
	r.release(ofC(1))
	r.requireSaid(grantMessage(ofA(1), "02"))
	r.requireQueue(ofA(2), ofB(1), ofA(3), ofA(4), ofA(5), ofA(6)) // members keep their places
	r.release(ofA(1), ofA(2))
	r.requireSaid(grantMessage(ofB(1)))
	r.release(ofB(1))
	r.requireSaid(grantMessage(ofA(3), "04", "05"))
	p := r.release(ofA(3))
	require.Equal(t, []string{ofA(5), ofA(6)}, p.Grant.Members)
	r.requireQueue(ofA(5), ofA(6))

	for _, c := range []struct{ waiting, members []string }{ // a Java waiter, if of a strange name
		{[]string{ofA(1), clientA + ":2", ofA(3)}, nil},
		{[]string{ofA(1), ofA(2), clientA + ":3"}, []string{ofA(2)}},
	} {
		r.s.Do(t, "DEL", "k", queue("k"), scores("k"))
		r.s.Do(t, append([]string{"RPUSH", queue("k")}, c.waiting...)...)
		require.Equal(t, c.members, r.heartbeat(clientA).Grant.Members)
	}

	// Counted from the owner that is served, though others keep their places before.
	r.s.Do(t, "FLUSHALL")
	r.follow(ofC(1), ofB(1), ofA(1), ofA(2), ofA(3), ofA(4))
	r.unsubscribe(r.of(clientB).Inbox("k"))
	r.release(ofC(1))
	r.requireSaid(grantMessage(ofA(1), "02", "03"))
}

func TestReleaseTakesOutTheServed(t *testing.T) {
	r := newHarness(t)
	r.follow(ofA(1), ofA(2), ofA(3), ofB(1), ofA(4))
	require.Equal(t, Passed{Ours: true}, r.release(ofA(1), ofA(2), ofA(3)))
	r.requireHeld(ofB(1), firstLease)
	r.requireQueue(ofA(4))

	// Not at the head, and one that is gone.
	r.s.Do(t, "FLUSHALL")
	r.follow(ofA(1), ofB(1), ofA(2), ofC(1), ofA(3))
	r.release(ofA(1), ofA(2), ofA(9), ofA(3))
	r.requireHeld(ofB(1), firstLease)
	r.requireQueue(ofC(1))

	// In another order than that of the queue.
	r.s.Do(t, "FLUSHALL")
	r.follow(ofA(1), ofA(2), ofA(3), ofB(1))
	r.release(ofA(1), ofA(3), ofA(2))
	r.requireHeld(ofB(1), firstLease)
	r.requireQueue()

	// Served, though the hold was lost then.
	r.s.Do(t, "FLUSHALL")
	r.follow(ofA(1), ofA(2), ofB(1))
	r.expire()
	require.Equal(t, Passed{}, r.release(ofA(1), ofA(2)))
	r.requireFree()
	r.requireQueue(ofB(1))
}

func TestLeaveFromAnywhere(t *testing.T) {
	r := newHarness(t)
	r.follow(ofC(1), ofA(1), ofB(1), ofA(2), ofA(3), ofB(2))
	require.Equal(t, Passed{Ours: true}, r.leave(ofA(2), ofA(1), ofA(7)))
	r.requireQueue(ofB(1), ofA(3), ofB(2))
	r.requireHeld(ofC(1), lease)
	r.requireSaid()
	require.Equal(t, Passed{Ours: true}, r.leave(ofA(2)), "repeated")
	r.requireQueue(ofB(1), ofA(3), ofB(2))
}

// An owner that leaves after it was granted the lock passes it on; one that leaves while it is
// free serves the next.
func TestF4_LeavePassesOn(t *testing.T) {
	r := newHarness(t)
	r.follow(ofC(1), ofA(1), ofA(2), ofB(1), ofB(2))
	r.release(ofC(1))
	r.requireSaid(grantMessage(ofA(1)))
	require.Equal(t, Passed{Ours: true}, r.leave(ofA(2), ofA(1)))
	r.requireSaid(grantMessage(ofB(1)))
	r.requireHeld(ofB(1), firstLease)
	require.Equal(t, Passed{Ours: true, Grant: granted(ofB(2))}, r.leave(ofB(1)))
	r.requireSaid()

	r.waits(ofA(3), ofC(2))
	r.expire()
	r.leave(ofA(3))
	r.requireSaid(grantMessage(ofC(2)))
	r.requireQueue()
}

func TestF7_LeaveWithTombstone(t *testing.T) {
	r := newHarness(t)
	r.hold()
	r.waits(ofA(1), ofA(2))
	_, err := r.of(ofA(1)).Leave(bounded(t), "k", 1, ofA(2), ofA(1))
	require.NoError(t, err)
	require.Equal(t, []Place{Gone, Waiting}, r.enter(ofA(2), ofA(1)).Places)
	r.requireQueue(ofA(1))

	// A late enter of an owner without a score, as after a deleted sorted set: it
	// leaves the list, too.
	r.s.Do(t, "DEL", scores("k"))
	_, err = r.of(ofA(1)).Leave(bounded(t), "k", 1, ofA(1))
	require.NoError(t, err)
	r.requireQueue()
}

// The counter is ours and Java's: it is only ever lowered to a number in use,
// never raised or created by a release, and keeps the expiry that it has.
func TestFairFencesGivenBack(t *testing.T) {
	r := newHarness(t, fencing(10), func(s *FairSettings) { s.Members = 3 })
	release := func(owner string, last int64) {
		t.Helper()
		p, err := r.of(owner).Release(bounded(t), "k", owner, last, false)
		require.NoError(t, err)
		require.True(t, p.Ours)
	}
	a := r.acquire(ofA(1))
	release(ofA(1), a.Fence+100)
	require.Equal(t, a.FenceEnd, counterValue(t, r.s), "never raised")

	a = r.acquire(ofA(2))
	r.s.Do(t, "DEL", token)
	release(ofA(2), a.Fence)
	require.EqualValues(t, 0, number(t, r.s, "EXISTS", token), "never created")

	r.s.Do(t, "SET", token, "41") // Java's
	r.enter(ofA(3))
	require.Greater(t, counterValue(t, r.s), int64(41))
	require.EqualValues(t, -1, number(t, r.s, "PTTL", token), "Java's counter never gets an expiry")
	release(ofA(3), 42)
	require.EqualValues(t, 42, counterValue(t, r.s))
	require.EqualValues(t, -1, number(t, r.s, "PTTL", token))

	r.s.Do(t, "SET", token, "42", "PX", "1000000")
	a = r.acquire(ofA(4))
	require.InDelta(t, time.Hour.Milliseconds(), number(t, r.s, "PTTL", token), slackMillis)
	r.s.Do(t, "PEXPIRE", token, "1000000")
	release(ofA(4), a.Fence-1)
	require.InDelta(t, 1000000, number(t, r.s, "PTTL", token), slackMillis, "giving back keeps the expiry")
}

func fencing(reserve int64) func(*FairSettings) {
	return func(s *FairSettings) { s.Fencing = Fencing{Reserve: reserve, Expiry: time.Hour} }
}

// Numbers grow from hold to hold, however it is got: taken, granted in a reply,
// by a message or to a run, confirmed, after the counter was lost.
func TestG10_FairFencesGrow(t *testing.T) {
	r := newHarness(t, fencing(10), func(s *FairSettings) { s.Members = 3 })
	var last int64
	next := func(first, end, most int64) {
		t.Helper()
		require.Greater(t, first, last)
		require.LessOrEqual(t, end-first, most-1)
		require.GreaterOrEqual(t, end, first)
		require.Equal(t, end, counterValue(t, r.s))
		last = end
	}
	said := func() Grant {
		t.Helper()
		said := r.said()
		require.Len(t, said, 1)
		g, ok := ParseGrant("k", said[0][len(r.of(ofA(1)).Inbox("k"))+1:])
		require.True(t, ok)
		return g
	}
	a := r.acquire(ofA(1))
	next(a.Fence, a.FenceEnd, 1)
	a = r.acquire(ofA(1)) // repeated
	next(a.Fence, a.FenceEnd, 1)
	r.waits(ofA(2), ofB(1), ofB(2), ofC(1))
	g := r.release(ofA(1)).Grant
	require.Empty(t, g.Members)
	next(g.Fence, g.FenceEnd, 1)
	r.release(ofA(2))
	g = said()
	require.Equal(t, []string{ofB(2)}, g.Members)
	next(g.Fence, g.FenceEnd, 10)
	require.Equal(t, int64(9), g.FenceEnd-g.Fence)
	require.InDelta(t, time.Hour.Milliseconds(), number(t, r.s, "PTTL", token), slackMillis)

	// What was not used is given back, by the holder only, and no number twice.
	p, err := r.of(ofA(9)).Release(bounded(t), "k", ofA(9), g.Fence, false)
	require.NoError(t, err)
	require.False(t, p.Ours)
	require.Equal(t, g.FenceEnd, counterValue(t, r.s))
	r.leave(ofC(1))
	_, err = r.of(ofB(1)).Release(bounded(t), "k", ofB(1), g.Fence+1, false, ofB(2))
	require.NoError(t, err)
	require.Equal(t, g.Fence+1, counterValue(t, r.s))
	last = g.Fence + 1

	r.s.Do(t, "DEL", token)
	g = r.enter(ofC(2)).Grant
	next(g.Fence, g.FenceEnd, 1)
	a, err = r.of(ofC(2)).Confirm(bounded(t), "k", ofC(2), lease)
	require.NoError(t, err)
	next(a.Fence, a.FenceEnd, 1)
	r.waits(ofA(3))
	r.s.Do(t, "SET", token, decimal(last+3_600_000_000)) // ahead of the clock
	last += 3_600_000_000
	r.release(ofC(2))
	g = said()
	next(g.Fence, g.FenceEnd, 1)
	require.Equal(t, last, g.Fence)
	r.waits(ofB(3))
	require.Equal(t, Passed{Ours: true}, r.leave(ofA(3)))
	g = said()
	next(g.Fence, g.FenceEnd, 1)
}

// However many follow, a grant names them all up to the most, and nobody beyond.
func TestRunOfMany(t *testing.T) {
	r := newHarness(t, func(s *FairSettings) { s.Members = 30 })
	for _, count := range []int{1, 7, 8, 9, 23, 24, 25, 29, 30, 31} {
		r.s.Do(t, "FLUSHALL")
		r.hold()
		var owners []string
		for i := range count + 1 {
			owners = append(owners, ofA(i))
		}
		r.enter(owners...)
		r.enter(ofB(1))
		r.enter(ofA(99))
		r.expire()
		require.Equal(t, owners[1:min(count, 30)+1], r.heartbeat(clientA).Grant.Members, "%d follow", count)
	}
}

// A waiter whose grant was not delivered stands before the run that was served instead, and
// keeps its place when the run is over.
func TestFair_RunBehindUndelivered(t *testing.T) {
	r := newHarness(t, func(s *FairSettings) { s.Members = 5 })
	r.follow(ofC(1), ofB(1), ofA(1), ofA(2), ofA(3))
	r.unsubscribe(r.of(clientB).Inbox("k"))
	r.release(ofC(1)) // A1 is granted, with a run
	r.requireQueue(ofB(1), ofA(2), ofA(3))
	_, err := r.of(clientC).ForceRelease(bounded(t), "k") // A2 is granted, which the run has served
	require.NoError(t, err)
	r.requireQueue(ofB(1), ofA(3))
	r.release(ofA(1), ofA(2), ofA(3))
	r.requireQueue(ofB(1))
}
