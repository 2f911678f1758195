package wire

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/watchdog"
)

// A PTTL that has run down to 0 while the key still stands must not read as
// "acquired".
func TestG1_LastMillisecondIsNotAcquired(t *testing.T) {
	s, n := start(t)
	for range 20 {
		s.Do(t, "HSET", "k", ownA, "1")
		s.Do(t, "PEXPIRE", "k", "3")
		until(t, func() bool {
			must(n.Inspect(bounded(t), "k"))(t)
			a := must(n.Acquire(bounded(t), asking("k", ownB)))(t)
			require.True(t, a.OK || a.Remaining >= time.Millisecond)
			return a.OK
		})
		require.Equal(t, ownB, must(n.Inspect(bounded(t), "k"))(t).Owner)
		s.Do(t, "DEL", "k")
	}
}

// All or none; a repeat finds what the first has taken.
func TestAcquireAll(t *testing.T) {
	s, n := start(t)
	ctx, keys := bounded(t), []string{"a", "b", "c"}
	mine, theirs := []string{ownA + "1", ownA + "2", ownA + "3"}, []string{ownB + "1", ownB + "2", ownB + "3"}
	requireTaken := func(want bool, owners []string) {
		t.Helper()
		before := state(t, s)
		require.Equal(t, want, must(n.AcquireAll(ctx, askingEach(keys, owners)))(t))
		require.Equal(t, before, state(t, s))
	}
	require.True(t, must(n.AcquireAll(ctx, askingEach(keys, mine)))(t))
	for i, key := range keys {
		h := must(n.Inspect(ctx, key))(t)
		require.InDelta(t, lease, h.Remaining, float64(slack))
		h.Remaining = 0
		require.Equal(t, holdfast.Status{Held: true, Owner: mine[i], Entries: 1}, h)
	}
	requireTaken(true, mine)
	must(n.Release(ctx, ReleaseRequest{Key: "a", Owner: mine[0], Notify: true}))(t)
	must(n.Release(ctx, ReleaseRequest{Key: "c", Owner: mine[2], Notify: true, Doubt: true}))(t)
	requireTaken(false, theirs) // b is held
	requireTaken(false, mine)   // c's owner has been given up
}

// A repeat that is refused PEXPIRE gives back what it took, and not what it found.
func TestF32_AcquireAllRefusedLeavesNothing(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	before := state(t, s)
	s.Do(t, "ACL", "SETUSER", "least", "on", ">secret", "~*", "+@all", "-pexpire")
	_, err := loggedIn(t, s, "least").AcquireAll(bounded(t), []AcquireRequest{asking("k", ownA), asking("l", ownA), asking("m", ownA)})
	requireRefused(t, "", err)
	require.Equal(t, before, state(t, s))
}

// A nested entry and a label touch no expiry, and a release ends all entries.
func TestSetEntries(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	until := expiry(t, s, "k")
	for _, entries := range []int{2, 3, 3, 1, 7} {
		require.True(t, must(n.SetEntries(bounded(t), "k", ownA, Entries{Count: entries}))(t))
		require.Equal(t, entries, must(n.Inspect(bounded(t), "k"))(t).Entries)
	}
	own, none := "its own", ""
	for want, label := range map[string]*string{"its own": &own, "": &none} {
		require.True(t, must(n.SetEntries(bounded(t), "k", ownA, Entries{2, label}))(t))
		h := must(n.Inspect(bounded(t), "k"))(t)
		require.Equal(t, []any{2, want}, []any{h.Entries, h.Label})
	}
	require.Equal(t, until, expiry(t, s, "k"))
	require.Equal(t, ReleaseReply{Ours: true}, must(n.Release(bounded(t), ReleaseRequest{Key: "k", Owner: ownA, Notify: true}))(t))
	require.Empty(t, state(t, s))
}

// On one Redis, and on a node of a quorum, which also brings the number of entries.
func TestRenewAnswersForEachKey(t *testing.T) {
	s, n, vote := startActive(t)
	keys, owners := []string{"a", "b", "c", "free", "d"}, slices.Repeat([]string{ownA}, 5)
	for _, voted := range []bool{false, true} {
		s.Do(t, "DEL", "a", "b", "c", "d")
		acquired(t, n, "b", ownB)
		s.Do(t, "SET", "c", "a string")
		before := state(t, s)
		for _, key := range []string{"a", "d"} {
			acquired(t, n, key, ownA)
			s.Do(t, "PEXPIRE", key, "9000")
		}
		entries := map[string]int{"a": 1, "d": 1}
		answers := []watchdog.Answer{watchdog.NotOurs, watchdog.Renewed, watchdog.Renewed, watchdog.Renewed, watchdog.NotOurs} // of an earlier call
		if voted {
			entries["a"] = 3
			asked := []Entries{{Count: 3}, {Count: 3}, {Count: 3}, {Count: 3}, {}}
			require.True(t, must(n.RenewVoted(bounded(t), vote, lease, keys, owners, asked, answers))(t), "it has its vote")
		} else {
			require.NoError(t, n.Renew(bounded(t), lease, keys, owners, answers))
		}
		require.Equal(t, []watchdog.Answer{watchdog.Renewed, watchdog.NotOurs, watchdog.NotOurs, watchdog.NotOurs, watchdog.Renewed}, answers)
		for k, count := range entries {
			h := must(n.Inspect(bounded(t), k))(t)
			require.Equal(t, count, h.Entries)
			require.InDelta(t, lease, h.Remaining, float64(slack))
			s.Do(t, "DEL", k)
		}
		require.Equal(t, before, state(t, s), "nothing else is touched, nor created again")
	}
}

// What Redis refuses for one key leaves that one unanswered and is the error.
func TestRenewRefused(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	s.Do(t, "ACL", "SETUSER", "default", "-pexpire")
	answers := make([]watchdog.Answer, 2)
	err := n.Renew(bounded(t), lease, []string{"k", "free"}, []string{ownA, ownA}, answers)
	require.Regexp(t, "can't run this command|ACL failure in script", err.Error())
	require.Equal(t, Refused, OutcomeOf(err))
	require.Equal(t, []watchdog.Answer{watchdog.Unanswered, watchdog.NotOurs}, answers)
}

// The embedded server's clock goes on while a script runs: the lock that the script has found expires under it.
func TestExpiredDuringAScript(t *testing.T) {
	m, n := embedded(t)
	m.ClockTTL(true)
	var slow atomic.Bool
	m.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
		if command == "HRANDFIELD" && slow.Load() {
			time.Sleep(600 * time.Millisecond)
		}
		return false
	})
	must(n.Acquire(bounded(t), AcquireRequest{Key: "k", Owner: ownA, Lease: 500 * time.Millisecond}))(t)
	slow.Store(true)
	got := must(n.Acquire(bounded(t), AcquireRequest{Key: "k", Owner: ownB, Lease: time.Second}))(t)
	require.LessOrEqual(t, got.Remaining, time.Millisecond, "taken, or to be asked for again at once")
}
