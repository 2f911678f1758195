package scripts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRenewAnswersForEachKey(t *testing.T) {
	s, n := start(t)
	for _, k := range []string{"a", "d"} {
		acquired(t, n, k, ownA)
		s.Do(t, "PEXPIRE", k, "1000")
	}
	acquired(t, n, "b", ownB)
	s.Do(t, "SET", "c", "a string")
	before := state(t, s)

	keys := []string{"a", "b", "c", "free", "d"}
	answers := []Answer{NotOurs, Renewed, Renewed, Renewed, NotOurs} // of an earlier call
	err := n.Renew(bounded(t), lease, keys, []string{ownA, ownA, ownA, ownA, ownA}, answers)
	require.NoError(t, err)
	require.Equal(t, []Answer{Renewed, NotOurs, NotOurs, NotOurs, Renewed}, answers)

	after := state(t, s)
	require.Len(t, after, 4, "nothing is created again")
	for _, k := range []string{"b", "c"} {
		require.Equal(t, before[k], after[k])
	}
	for _, k := range []string{"a", "d"} {
		require.InDelta(t, lease.Milliseconds(), number(t, s, "PTTL", k), slackMillis)
	}
}

// What Redis refuses for one key leaves that one unanswered and is the error.
func TestRenewRefused(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	s.Do(t, "ACL", "SETUSER", "default", "-pexpire")
	answers := []Answer{Renewed, Renewed}
	err := n.Renew(bounded(t), lease, []string{"k", "free"}, []string{ownA, ownA}, answers)
	require.Regexp(t, "can't run this command|ACL failure in script", err.Error())
	require.Equal(t, Refused, OutcomeOf(err))
	require.Equal(t, []Answer{Unanswered, NotOurs}, answers)
}
