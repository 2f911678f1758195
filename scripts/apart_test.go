package scripts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// confined is a node whose user may not touch keys that begin with "no", with a count
// of the calls that it makes.
func confined(t *testing.T) (s *redistest.Server, admin, n *Node, calls func() int) {
	t.Helper()
	s, admin = start(t)
	s.Do(t, "ACL", "SETUSER", "confined", "reset", "on", ">secret", "~ok*", "~redisson_*", "~holdfast_*", "&*", "+@all")
	n = NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "confined", "secret" }))
	return s, admin, n, func() int {
		stats := text(t, s, "INFO", "commandstats")
		made, rejected := 0, 0
		for _, line := range []string{"evalsha", "eval"} {
			var c, r int
			_, text, _ := strings.Cut(stats, "cmdstat_"+line+":")
			_, _ = fmt.Sscanf(text, "calls=%d,", &c)
			_, text, _ = strings.Cut(text, "rejected_calls=")
			_, _ = fmt.Sscanf(text, "%d,", &r)
			made, rejected = made+c, rejected+r
		}
		return made + rejected
	}
}

// mixed is so many keys of which those at the given places are forbidden.
func mixed(n int, forbidden ...int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("ok", i))
	}
	for _, i := range forbidden {
		keys[i] = fmt.Sprint("no", i)
	}
	return keys
}

// A key that the user may not touch costs the others of its call no answer, and few
// calls.
func TestG9_RenewBesideForbiddenKeys(t *testing.T) {
	s, admin, n, calls := confined(t)
	_ = admin.Renew(bounded(t), lease, []string{"ok"}, []string{ownA}, make([]Answer, 1)) // Redis knows the script
	for name, bad := range map[string][]int{"one": {37}, "two apart": {0, 99}, "ten neighbours": {50, 51, 52, 53, 54, 55, 56, 57, 58, 59}} {
		s.Do(t, "FLUSHALL")
		keys, owners := mixed(100, bad...), make([]string, 100)
		for i, k := range keys {
			owners[i] = ownA
			acquired(t, admin, k, ownA)
		}
		answers, want := make([]Answer, 100), make([]Answer, 100)
		for i := range want {
			want[i] = Renewed
		}
		for _, i := range bad {
			want[i] = Unanswered
		}
		before := calls()
		err := n.Renew(bounded(t), lease, keys, owners, answers)
		require.ErrorContains(t, err, "NOPERM", name)
		require.Equal(t, Refused, OutcomeOf(err), name)
		require.Equal(t, want, answers, name)
		require.LessOrEqual(t, calls()-before, 1+10+10*min(len(bad), 2)+4, name)
	}
}

// That the user may not call scripts is asked once, not key by key.
func TestG9_RenewWithoutTheRightToCall(t *testing.T) {
	s, _, n, calls := confined(t)
	s.Do(t, "ACL", "SETUSER", "confined", "-evalsha")
	before := calls()
	keys := mixed(100)
	err := n.Renew(bounded(t), lease, keys, keys, make([]Answer, 100))
	require.ErrorContains(t, err, "NOPERM")
	require.Equal(t, 1, calls()-before)
}

// Each key of a call has its own answer, also one that is no lock, and none keeps anything of an earlier call.
func TestG9_HeartbeatBesideAForbiddenKey(t *testing.T) {
	s, admin, n, _ := confined(t)
	settings := settingsOf(clientA)
	f, all := NewFair(n, settings), NewFair(admin, settings)
	var asked []Heartbeat
	for i, k := range mixed(41, 7) {
		acquired(t, admin, k, ownB)
		must(all.Enter(bounded(t), k, ofA(1)))(t)
		asked = append(asked, Heartbeat{Key: k, Owners: []string{ofA(1), ofA(2)}, Distances: make([]time.Duration, 2)})
		switch i % 4 {
		case 0:
			s.Do(t, "DEL", k)
		case 1:
			s.Do(t, "DEL", k, queue(k))
			s.Do(t, "RPUSH", queue(k), ofJ(1))
		case 2:
			s.Do(t, "SET", k, "no lock")
		}
	}
	probed := slices.Repeat([]Probed{{Err: errReply, ProbeSoon: true, Place: 3, Label: "of an earlier call"}}, len(asked))
	require.NoError(t, f.Heartbeat(bounded(t), asked, probed))
	for i, l := range probed {
		want, says := Probed{Absent: []int{1}}, ""
		switch {
		case i == 7:
			want, says = Probed{Err: l.Err}, "NOPERM"
		case i%4 == 0:
			want.Grant = granted(ofA(1))
		case i%4 == 1:
			want = Probed{ProbeSoon: true, Absent: []int{0, 1}}
		case i%4 == 2:
			want, says = Probed{Err: l.Err}, "WRONGTYPE"
		}
		require.Equal(t, want, l, i)
		if says != "" {
			require.ErrorContains(t, l.Err, says, i)
			require.Equal(t, Refused, OutcomeOf(l.Err))
		}
	}
	require.ErrorContains(t, f.Heartbeat(bounded(t), asked[7:8], probed[:1]), "NOPERM")
}

// On a node of a quorum, too, with a vote and without.
func TestG9_RenewVotedBesideAForbiddenKey(t *testing.T) {
	s, admin, vote := startActive(t)
	s.Do(t, "ACL", "SETUSER", "confined", "reset", "on", ">secret", "~ok*", "~"+marker, "+@all")
	n := NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "confined", "secret" }))
	keys, owners := mixed(30, 5), make([]string, 30)
	for i, k := range keys {
		owners[i] = ownA
		acquired(t, admin, k, ownA)
	}
	answers := make([]Answer, 30)
	counts, err := n.RenewVoted(bounded(t), vote, lease, keys, owners, make([]int, 30), answers)
	require.ErrorContains(t, err, "NOPERM")
	require.True(t, counts)
	for i, a := range answers {
		require.Equal(t, i == 5, a == Unanswered, i)
	}
	s.Do(t, "SET", marker, "another")
	counts, err = n.RenewVoted(bounded(t), vote, lease, keys, owners, make([]int, 30), answers)
	require.ErrorContains(t, err, "NOPERM")
	require.False(t, counts)
	require.NotContains(t, answers, Renewed)
}

// Only refusals of keys are asked again, and each key is in one call at a time.
func TestApart(t *testing.T) {
	no := errors.New("no")
	for _, n := range []int{2, 9, 10, 11, 99, 100, 101, 1000} {
		seen := make([]int, n)
		require.NoError(t, apart(n, forbidden, func(from, to int) error {
			for i := from; i < to; i++ {
				seen[i]++
			}
			return nil
		}))
		for i := range seen {
			require.Equal(t, 1, seen[i])
		}
		require.Equal(t, no, apart(n, forbidden, func(from, to int) error {
			if to == n {
				return no
			}
			return nil
		}))
	}
	require.False(t, forbidden(nil))
	require.False(t, forbidden(context.Canceled))
}
