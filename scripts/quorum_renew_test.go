package scripts

import (
	"testing"

	"github.com/stretchr/testify/require"
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
