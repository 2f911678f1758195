package wire

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

// confined is a node whose user may not touch keys that begin with "no".
func confined(t *testing.T, s *redistest.Server) *Redis {
	t.Helper()
	s.Do(t, "ACL", "SETUSER", "confined", "reset", "on", ">secret", "~ok*", "~redisson_*", "~holdfast_*", "&*", "+@all")
	return loggedIn(t, s, "confined")
}

// mixed is so many keys of which those at the given places are forbidden, each with an owner.
func mixed(n int, forbidden ...int) (keys, owners []string) {
	for i := range n {
		keys, owners = append(keys, fmt.Sprint("ok", i)), append(owners, ownA)
	}
	for _, i := range forbidden {
		keys[i] = fmt.Sprint("no", i)
	}
	return keys, owners
}

// A key that the user may not touch costs the others of its call no answer, and few
// calls. That the user may not call scripts is asked once, not key by key.
func TestG9_RenewBesideForbiddenKeys(t *testing.T) {
	s, admin := start(t)
	n := confined(t, s)
	calls := func() int { return cost(t, s)["evalsha"] + cost(t, s)["eval"] }
	_ = admin.Renew(bounded(t), lease, []string{"ok"}, []string{ownA}, make([]watchdog.Answer, 1)) // Redis knows the script
	for _, forbidden := range [][]int{{37}, {0, 99}, {50, 51, 52, 53, 54, 55, 56, 57, 58, 59}} {
		s.Do(t, "FLUSHALL")
		keys, owners := mixed(100, forbidden...)
		want := slices.Repeat([]watchdog.Answer{watchdog.Renewed}, 100)
		for i, key := range keys {
			acquired(t, admin, key, ownA)
			if slices.Contains(forbidden, i) {
				want[i] = watchdog.Unanswered
			}
		}
		answers, before := make([]watchdog.Answer, 100), calls()
		requireRefused(t, "NOPERM", n.Renew(bounded(t), lease, keys, owners, answers), forbidden)
		require.Equal(t, want, answers)
		require.LessOrEqual(t, calls()-before, 1+10+10*min(len(forbidden), 2)+4, forbidden)
	}

	s.Do(t, "ACL", "SETUSER", "confined", "-evalsha")
	before := calls()
	keys, owners := mixed(100)
	require.ErrorContains(t, n.Renew(bounded(t), lease, keys, owners, make([]watchdog.Answer, 100)), "NOPERM")
	require.Equal(t, 1, calls()-before)
}

// Each key of a call has its own answer, also one that is no lock, and none keeps anything of an earlier call.
func TestG9_HeartbeatBesideAForbiddenKey(t *testing.T) {
	s, admin := start(t)
	settings := settingsOf(clientA)
	f, all := NewFair(confined(t, s), settings), NewFair(admin, settings)
	var asked []HeartbeatRequest
	keys, _ := mixed(41, 7)
	for i, k := range keys {
		acquired(t, admin, k, ownB)
		must(all.Enter(bounded(t), k, ofA(1)))(t)
		asked = append(asked, HeartbeatRequest{Key: k, Owners: []string{ofA(1), ofA(2)}, Ahead: make([]time.Duration, 2)})
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
	replies := slices.Repeat([]HeartbeatReply{{Err: errReply, HeartbeatSoon: true, Place: 3, Label: "of an earlier call"}}, len(asked))
	require.NoError(t, f.Heartbeat(bounded(t), asked, replies))
	for i, p := range replies {
		want := HeartbeatReply{Absent: []int{1}}
		switch {
		case i == 7:
			requireRefused(t, "NOPERM", p.Err)
			want = HeartbeatReply{Err: p.Err}
		case i%4 == 0:
			want.Grant = granted(ofA(1))
		case i%4 == 1:
			want = HeartbeatReply{HeartbeatSoon: true, Absent: []int{0, 1}}
		case i%4 == 2:
			requireRefused(t, "WRONGTYPE", p.Err)
			want = HeartbeatReply{Err: p.Err}
		}
		require.Equal(t, want, p, i)
	}
	require.ErrorContains(t, f.Heartbeat(bounded(t), asked[7:8], replies[:1]), "NOPERM")
	require.NoError(t, f.Heartbeat(bounded(t), []HeartbeatRequest{asked[7], asked[6]}, replies[:2]), "their errors differ")
	requireRefused(t, "NOPERM", replies[0].Err)
	requireRefused(t, "WRONGTYPE", replies[1].Err)
}

// On a node of a quorum, too, with a vote and without. A lock that is there on a node which did not give it is no vote. That it
// is not there is always true.
func TestG9_RenewVotedBesideAForbiddenKey(t *testing.T) {
	s, admin, vote := startActive(t)
	n := confined(t, s)
	keys, owners := mixed(30, 5)
	for _, k := range keys[:29] {
		acquired(t, admin, k, ownA)
	}
	answers := make([]watchdog.Answer, 30)
	for _, valid := range []bool{true, false} {
		want := make([]watchdog.Answer, 30)
		if valid {
			want = slices.Repeat([]watchdog.Answer{watchdog.Renewed}, 30)
			want[5] = watchdog.Unanswered
		} else {
			s.Do(t, "SET", marker, "another")
		}
		want[29] = watchdog.NotOurs
		counts, err := n.RenewVoted(bounded(t), vote, lease, keys, owners, make([]Entries, 30), answers)
		require.ErrorContains(t, err, "NOPERM")
		require.Equal(t, valid, counts)
		require.Equal(t, want, answers)
	}
}
