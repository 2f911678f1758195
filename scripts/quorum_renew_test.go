package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestRenewVotedAnswersForEachKey(t *testing.T) {
	s, n, vote := startActive(t)
	for _, k := range []string{"a", "d"} {
		acquired(t, n, k, ownA)
		s.Do(t, "PEXPIRE", k, "1000")
	}
	acquired(t, n, "b", ownB)
	s.Do(t, "SET", "c", "a string")
	before := state(t, s)

	keys, owners := []string{"a", "b", "c", "free", "d"}, []string{ownA, ownA, ownA, ownA, ownA}
	answers := make([]Answer, 5)
	counts, err := n.RenewVoted(bounded(t), vote, lease, keys, owners, []int{3, 3, 3, 3, 0}, answers)
	require.NoError(t, err)
	require.True(t, counts)
	require.Equal(t, []Answer{Renewed, NotOurs, NotOurs, NotOurs, Renewed}, answers)

	after := state(t, s)
	require.Len(t, after, 5, "nothing is created again")
	for _, k := range []string{"b", "c", marker} {
		require.Equal(t, before[k], after[k])
	}
	for k, entries := range map[string]int{"a": 3, "d": 1} {
		h, err := n.Inspect(bounded(t), k)
		require.NoError(t, err)
		require.Equal(t, ownA, h.Owner)
		require.Equal(t, entries, h.Entries)
		require.InDelta(t, lease, h.Remaining, float64(slack))
	}
}

// A lock that is there on a node which did not give it is no vote. That it is not
// there is always true.
func TestGuard_RenewedCountsOnlyWithTheKnownMarker(t *testing.T) {
	s, n, vote := startActive(t)
	acquired(t, n, "k", ownA)
	renew := func(v *Vote) (bool, []Answer) {
		t.Helper()
		answers := make([]Answer, 2)
		counts, err := n.RenewVoted(bounded(t), v, lease, []string{"k", "free"}, []string{ownA, ownA}, []int{0, 0}, answers)
		require.NoError(t, err)
		return counts, answers
	}
	want := []Answer{Renewed, NotOurs}
	counts, answers := renew(vote)
	require.True(t, counts)
	require.Equal(t, want, answers)

	for name, change := range map[string]func(){
		"none":           func() { s.Do(t, "DEL", marker) },
		"another's":      func() { forge(t, s, wordRun, "other") },
		"other epoch":    func() { forge(t, s, wordEpoch, "abc") },
		"longer":         func() { s.Do(t, "APPEND", marker, " ") },
		"empty":          func() { s.Do(t, "SET", marker, "") },
		"activated anew": func() { s.Do(t, "DEL", marker); activated(t, n) },
	} {
		s.Do(t, "SET", marker, vote.marker)
		change()
		counts, answers = renew(vote)
		require.False(t, counts, name)
		require.Equal(t, want, answers, name)
		counts, answers = renew(nil) // without a guard
		require.True(t, counts, name)
		require.Equal(t, want, answers, name)
	}
}

func TestG5_RenewVotedRepeated(t *testing.T) {
	s, n, vote := startActive(t)
	acquired(t, n, "k", ownA)
	for range 2 {
		s.Do(t, "PEXPIRE", "k", "1000")
		answers := make([]Answer, 1)
		_, err := n.RenewVoted(bounded(t), vote, lease, []string{"k"}, []string{ownA}, []int{4}, answers)
		require.NoError(t, err)
		require.Equal(t, []Answer{Renewed}, answers)
		h, err := n.Inspect(bounded(t), "k")
		require.NoError(t, err)
		require.Equal(t, 4, h.Entries)
		require.InDelta(t, lease, h.Remaining, float64(slack))
	}
}

func TestRenewVotedRefused(t *testing.T) {
	s, n, vote := startActive(t)
	acquired(t, n, "k", ownA)
	s.Do(t, "ACL", "SETUSER", "default", "-pexpire")
	answers := make([]Answer, 2)
	_, err := n.RenewVoted(bounded(t), vote, lease, []string{"k", "free"}, []string{ownA, ownA}, []int{0, 0}, answers)
	require.Regexp(t, "can't run this command|ACL failure in script", err.Error())
	require.Equal(t, Refused, OutcomeOf(err))
	require.Equal(t, []Answer{Unanswered, NotOurs}, answers)
}

func TestF30_QuorumOutOfMemory(t *testing.T) {
	s, n, vote := startActive(t)
	ctx := bounded(t)
	require.True(t, voted(t, n, vote, ownA).OK)
	s.Do(t, "CONFIG", "SET", "maxmemory", "1")
	before := state(t, s)
	for _, v := range []*Vote{vote, nil} {
		for _, f := range []bool{false, true} {
			_, err := acquireVoted(n, ctx, v, "free", ownA, lease, f)
			require.ErrorContains(t, err, "OOM")
			require.Equal(t, Unavailable, OutcomeOf(err))
		}
	}
	_, err := n.WriteFence(ctx, "k", ownA, 1, 0)
	require.ErrorContains(t, err, "OOM")
	require.Equal(t, Unavailable, OutcomeOf(err))
	require.Equal(t, before, state(t, s))

	// A nested entry that the node missed must not keep the hold from being renewed.
	answers := make([]Answer, 1)
	counts, err := n.RenewVoted(ctx, vote, time.Minute, []string{"k"}, []string{ownA}, []int{2}, answers)
	require.NoError(t, err)
	require.True(t, counts)
	require.Equal(t, []Answer{Renewed}, answers)
	require.InDelta(t, time.Minute.Milliseconds(), integerOf(t, s.Do(t, "PTTL", "k")), slackMillis)

	s.Do(t, "SCRIPT", "FLUSH") // the vote can be had again
	_, again := checked(t, n, Mark)
	require.Equal(t, vote, again)
	require.NoError(t, undo(n, ctx, "k", ownA, true))
	requireGone(t, s, "k")
	s.Do(t, "DEL", marker)
	_, _, err = n.CheckNode(ctx, Mark, newEpoch(), ofThree(longest), "")
	require.ErrorContains(t, err, "OOM")
	require.Equal(t, Unavailable, OutcomeOf(err))
}

func requireGone(t *testing.T, s *redistest.Server, key string) {
	t.Helper()
	require.EqualValues(t, 0, integerOf(t, s.Do(t, "EXISTS", key)))
}
