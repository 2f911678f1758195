package scripts

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the node says is no more than words between quotes.
func TestVoteTextIsSafe(t *testing.T) {
	for _, text := range []string{"'", "\\", "\n", "\r", "]]", "'; return 1 --", "\x00", "é"} {
		v := newVote("a b"+text+"c", "master_replid:"+text)
		before, after, named := strings.Cut(quorumAcquire.text, noVote)
		require.True(t, named)
		rest, whole := strings.CutPrefix(v.acquire.text, before)
		require.True(t, whole)
		line, whole := strings.CutSuffix(rest, after)
		require.True(t, whole)
		require.Regexp(t, `^local marker, replID = '[a-zA-Z0-9 _:]+', '[a-zA-Z0-9 _:]+'\n$`, line)
	}
	shas := []string{quorumAcquire.sha, newVote("m", "r").acquire.sha, newVote("m", "s").acquire.sha, newVote("n", "r").acquire.sha}
	slices.Sort(shas)
	require.Len(t, slices.Compact(shas), 4)
}

// A lock that is there on a node which did not give it is no vote. That it is not
// there is always true.
func TestGuard_RenewedCountsOnlyWithTheKnownMarker(t *testing.T) {
	s, n, vote := startActive(t)
	acquired(t, n, "k", ownA)
	renew := func(v *Vote) (bool, []Answer) {
		t.Helper()
		answers := make([]Answer, 2)
		counts := must(n.RenewVoted(bounded(t), v, lease, []string{"k", "free"}, []string{ownA, ownA}, []int{0, 0}, answers))(t)
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
