package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReleaseEndsAllEntriesAndLeavesATombstoneIfInDoubt(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	must(r.redis.SetEntries(bounded(t), "k", ofA(1), Entries{Count: 7}))(t)
	require.Equal(t, FairReply{Ours: true}, r.release(ofA(1)))
	r.requireFree()
	require.Equal(t, []OwnerState{Waiting}, r.enter(ofA(1)).States, "not in doubt: nothing keeps a late call out")
	require.True(t, must(r.of(ofA(1)).Release(bounded(t), FairReleaseRequest{ReleaseRequest: ReleaseRequest{Key: "k", Owner: ofA(1), Doubt: true}}))(t).Ours)
	require.Equal(t, []OwnerState{Gone}, r.enter(ofA(1)).States)
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
	require.Equal(t, []string{ofA(5), ofA(6)}, r.release(ofA(3)).Grant.Members)
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
	r.unsubscribe(r.inbox(clientB))
	r.release(ofC(1))
	r.requireSaid(grantMessage(ofA(1), "02", "03"))
}

// An owner that leaves after it was granted the lock passes it on; one that leaves while it is
// free serves the next.
func TestF4_LeavePassesOn(t *testing.T) {
	r := newHarness(t)
	r.follow(ofC(1), ofA(1), ofA(2), ofB(1), ofB(2))
	r.release(ofC(1))
	r.requireSaid(grantMessage(ofA(1)))
	require.Equal(t, FairReply{Ours: true}, r.leave(ofA(2), ofA(1)))
	r.requireSaid(grantMessage(ofB(1)))
	r.requireHeld(ofB(1), grantLease)
	require.Equal(t, FairReply{Ours: true, Grant: granted(ofB(2))}, r.leave(ofB(1)))
	r.requireSaid()

	r.waits(ofA(3), ofC(2))
	r.expire()
	r.leave(ofA(3))
	r.requireSaid(grantMessage(ofC(2)))
	r.requireQueue()
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
		r.waits(ofB(1), ofA(99))
		r.expire()
		require.Equal(t, owners[1:min(count, 30)+1], r.heartbeat(clientA).Grant.Members, "%d follow", count)
	}
}

// A waiter whose grant was not delivered stands before the run that was served instead, and
// keeps its place when the run is over.
func TestFair_RunBehindUndelivered(t *testing.T) {
	r := newHarness(t, func(s *FairSettings) { s.Members = 5 })
	r.follow(ofC(1), ofB(1), ofA(1), ofA(2), ofA(3))
	r.unsubscribe(r.inbox(clientB))
	r.release(ofC(1)) // A1 is granted, with a run
	r.requireQueue(ofB(1), ofA(2), ofA(3))
	must(r.of(clientC).ForceRelease(bounded(t), "k"))(t) // A2 is granted, which the run has served
	r.requireQueue(ofB(1), ofA(3))
	r.release(ofA(1), ofA(2), ofA(3))
	r.requireQueue(ofB(1))

	// A member that has left takes nobody along in its place.
	r.s.Do(t, "FLUSHALL")
	r.follow(ofA(1), ofA(2), ofC(1), ofC(2))
	r.release(ofA(1), ofA(2), ofA(9))
	r.requireServed(ofC(1), ofC(2))
}
