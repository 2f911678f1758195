package scripts

import (
	"fmt"
	"testing"
	"time"

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
		require.InDelta(t, lease.Milliseconds(), integerOf(t, s.Do(t, "PTTL", k)), slackMillis)
	}
}

func TestRenewHundredsInOneCall(t *testing.T) {
	_, n := start(t)
	const many = 500
	var keys, owners []string
	for i := range many {
		k := fmt.Sprint("k", i)
		keys, owners = append(keys, k), append(owners, ownA)
		if i%3 != 0 {
			acquired(t, n, k, ownA)
		}
	}
	answers := make([]Answer, many)
	require.NoError(t, n.Renew(bounded(t), lease, keys, owners, answers))
	for i, a := range answers {
		if i%3 != 0 {
			require.Equal(t, Renewed, a, i)
		} else {
			require.Equal(t, NotOurs, a, i)
		}
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

func TestRenewArguments(t *testing.T) {
	n := NewNode(nil) // any I/O would panic
	ctx := bounded(t)
	one, two := []string{"a"}, []string{"a", "b"}
	for _, err := range []error{
		n.Renew(ctx, time.Millisecond, one, one, make([]Answer, 1)),
		n.Renew(ctx, lease, nil, nil, nil),
		n.Renew(ctx, lease, two, one, make([]Answer, 2)),
		n.Renew(ctx, lease, two, two, make([]Answer, 1)),
	} {
		require.Error(t, err)
		require.Equal(t, Refused, OutcomeOf(err))
	}
}
