package scripts

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// A PTTL that has run down to 0 while the key still stands must not read as
// "acquired".
func TestG1_LastMillisecondIsNotAcquired(t *testing.T) {
	s, n := start(t)
	for range 20 {
		s.Do(t, "HSET", "k", ownA, "1")
		s.Do(t, "PEXPIRE", "k", "3")
		for free := false; !free; {
			a := must(n.Acquire(bounded(t), "k", ownB, lease))(t)
			if free = a.OK; !free {
				require.GreaterOrEqual(t, a.Remaining, time.Millisecond)
				continue
			}
			require.Equal(t, ownB, must(n.Inspect(bounded(t), "k"))(t).Owner)
		}
		s.Do(t, "DEL", "k")
	}
}

// All or none; a repeat finds what the first has taken.
func TestAcquireAll(t *testing.T) {
	s, n := start(t)
	ctx, keys := bounded(t), []string{"a", "b", "c"}
	mine, theirs := []string{ownA + "1", ownA + "2", ownA + "3"}, []string{ownB + "1", ownB + "2", ownB + "3"}
	require.True(t, must(n.AcquireAll(ctx, keys, mine, lease))(t))
	for i, key := range keys {
		h := must(n.Inspect(ctx, key))(t)
		require.Equal(t, mine[i], h.Owner)
		require.Equal(t, 1, h.Entries)
		require.Greater(t, h.Remaining, lease-5*time.Second)
	}
	before := state(t, s)
	require.True(t, must(n.AcquireAll(ctx, keys, mine, lease))(t))
	require.Equal(t, before, state(t, s))

	must(n.Release(ctx, "a", mine[0], 0))(t)
	must(n.CleanUp(ctx, "c", mine[2]))(t)
	before = state(t, s)
	for _, owners := range [][]string{theirs, mine} { // b is held; c's owner has been given up
		require.False(t, must(n.AcquireAll(ctx, keys, owners, lease))(t))
		require.Equal(t, before, state(t, s))
	}
}

// A repeat that is refused PEXPIRE gives back what it took, and not what it found.
func TestF32_AcquireAllRefusedLeavesNothing(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	before := state(t, s)
	s.Do(t, "ACL", "SETUSER", "least", "on", ">secret", "~*", "+@all", "-pexpire")
	least := NewNode(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "least", "secret" }))
	_, err := least.AcquireAll(bounded(t), []string{"k", "l", "m"}, []string{ownA, ownA, ownA}, lease)
	require.Equal(t, Refused, OutcomeOf(err))
	require.Equal(t, before, state(t, s))
}

func TestRecount(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	until := expiry(t, s, "k")
	for _, entries := range []int{2, 3, 3, 1} {
		require.True(t, must(n.Recount(bounded(t), "k", ownA, entries))(t))
		require.Equal(t, entries, must(n.Inspect(bounded(t), "k"))(t).Entries)
	}
	require.Equal(t, until, expiry(t, s, "k"), "a nested entry touches no expiry")
}

func TestReleaseEndsAnyCount(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "k", ownA)
	must(n.Recount(bounded(t), "k", ownA, 7))(t)
	require.Equal(t, Released{Ours: true}, must(n.Release(bounded(t), "k", ownA, 0))(t))
	require.Empty(t, state(t, s))
}

// Whoever is not the owner ends nothing, and wakes nobody.
func TestG6_OnlyTheOwner(t *testing.T) {
	s, n := start(t)
	heard := listen(t, s)
	heard.psubscribe("*{k}*")
	for _, stranger := range []string{ownB, ownA[:len(ownA)-1], ownA + " ", "*", "mode"} {
		acquired(t, n, "k", ownA)
		before := state(t, s)
		ctx := bounded(t)

		require.Zero(t, must(n.Release(ctx, "k", stranger, 0))(t))
		require.Zero(t, must(n.Release(ctx, "k", stranger, 1))(t))
		require.False(t, must(n.Recount(ctx, "k", stranger, 5))(t))
		answers := []Answer{Renewed}
		require.NoError(t, n.Renew(ctx, time.Hour, []string{"k"}, []string{stranger}, answers))
		require.Equal(t, []Answer{NotOurs}, answers)
		require.Equal(t, before, state(t, s))

		require.Zero(t, must(n.CleanUp(ctx, "k", stranger))(t))
		s.Do(t, "DEL", tombstone("k", stranger))
		require.Equal(t, before, state(t, s))
		s.Do(t, "FLUSHALL")
		require.False(t, must(n.ForceRelease(ctx, "k"))(t))
		heard.requireSaid()
	}
	acquired(t, n, "k", ownA)
	require.True(t, must(n.ForceRelease(bounded(t), "k"))(t))
	heard.requireSaid(Channel("k") + " 0")
}

// Each hold is asked for by itself: what is another's, given up or no lock costs the others
// nothing, on one Redis and on a node of a quorum.
func TestAcquireEach(t *testing.T) {
	s, n, vote := startActive(t)
	each := func(f *Fencing) func([]Ask, []NodeReply) error {
		return func(asks []Ask, replies []NodeReply) error {
			said := make([]Result[Acquired], len(asks))
			err := n.AcquireEach(bounded(t), f, asks, said)
			for i, r := range said {
				replies[i] = NodeReply{Acquired: r.Value, Err: r.Err}
			}
			return err
		}
	}
	voted := func(v *Vote, fenced bool) func([]Ask, []NodeReply) error {
		return func(asks []Ask, replies []NodeReply) error {
			return n.AcquireVoted(bounded(t), v, fenced, asks, replies)
		}
	}
	for name, way := range map[string]struct {
		ask           func([]Ask, []NodeReply) error
		voted, fenced bool
	}{
		"plain":             {each(nil), false, false},
		"fenced":            {each(fencingHour), false, true},
		"voted":             {voted(vote, false), true, false},
		"voted, fenced":     {voted(vote, true), true, true},
		"unguarded":         {voted(nil, false), true, false},
		"unguarded, fenced": {voted(nil, true), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s.Do(t, "FLUSHALL")
			s.Do(t, "SET", marker, vote.marker)
			acquired(t, n, "held", ownB)
			s.Do(t, "HSET", "endless", ownB, "1")
			s.Do(t, "HSET", "nameless", "", "1")
			s.Do(t, "HSET", "foreign", "one", "1", "two", "2")
			s.Do(t, "SET", "string", "x")
			must(n.CleanUp(bounded(t), "gone", ownA))(t)
			before, called := state(t, s), serverMicros(t, s)
			var asks []Ask
			for _, key := range []string{"free", "held", "endless", "gone", "string", "nameless", "foreign", "also free"} {
				asks = append(asks, Ask{key, ownA, lease})
			}
			said := make([]NodeReply, len(asks))
			require.NoError(t, way.ask(asks, said))
			for _, i := range []int{0, 7} {
				require.True(t, said[i].OK)
				require.Equal(t, way.fenced && !way.voted, said[i].Fence > 0)
				require.Equal(t, way.fenced && way.voted, said[i].Clock >= called && said[i].Clock <= serverMicros(t, s))
				require.Equal(t, []string{ownA}, listed(t, s, "HKEYS", asks[i].Key))
				lasts(t, s, asks[i].Key, lease)
			}
			holder := map[bool]string{true: ownB}[way.voted]
			require.InDelta(t, lease, said[1].Remaining, float64(slack))
			require.Equal(t, holder, said[1].Holder)
			require.Equal(t, NodeReply{Acquired: Acquired{Remaining: NoExpiry}, Holder: holder}, said[2])
			require.Equal(t, NodeReply{Acquired: Acquired{Gone: true}}, said[3])
			for _, r := range said[4:7] {
				require.ErrorContains(t, r.Err, "WRONGTYPE")
				require.Equal(t, Refused, OutcomeOf(r.Err))
			}
			after := state(t, s)
			for _, ask := range asks[1:7] {
				require.Equal(t, before[ask.Key], after[ask.Key])
			}
			require.NoError(t, way.ask(asks[:1], said[:1])) // again
			require.True(t, said[0].OK)
		})
	}
	s.Do(t, "SET", marker, "other")
	said := make([]NodeReply, 2)
	require.NoError(t, n.AcquireVoted(bounded(t), vote, false, []Ask{{"new", ownA, lease}, {"held", ownA, lease}}, said))
	require.Equal(t, []NodeReply{{NoVote: true}, {NoVote: true}}, said)
}

// renewals renew on one Redis, and on a node of a quorum, where entries may be told, too.
func renewals(t *testing.T, n *Node, vote *Vote) map[string]func(keys, owners []string, entries []int, answers []Answer) error {
	return map[string]func([]string, []string, []int, []Answer) error{
		"plain": func(keys, owners []string, _ []int, answers []Answer) error {
			return n.Renew(bounded(t), lease, keys, owners, answers)
		},
		"voted": func(keys, owners []string, entries []int, answers []Answer) error {
			for i := range answers { // those of an earlier call
				answers[i] = Renewed
			}
			counts, err := n.RenewVoted(bounded(t), vote, lease, keys, owners, entries, answers)
			require.True(t, counts)
			return err
		},
	}
}

func TestRenewAnswersForEachKey(t *testing.T) {
	s, n, vote := startActive(t)
	for name, renew := range renewals(t, n, vote) {
		s.Do(t, "DEL", "a", "b", "c", "d")
		for _, k := range []string{"a", "d"} {
			acquired(t, n, k, ownA)
			s.Do(t, "PEXPIRE", k, "1000")
		}
		acquired(t, n, "b", ownB)
		s.Do(t, "SET", "c", "a string")
		before := state(t, s)
		keys, owners := []string{"a", "b", "c", "free", "d"}, []string{ownA, ownA, ownA, ownA, ownA}
		answers := []Answer{NotOurs, Renewed, Renewed, Renewed, NotOurs} // of an earlier call
		require.NoError(t, renew(keys, owners, []int{3, 3, 3, 3, 0}, answers))
		require.Equal(t, []Answer{Renewed, NotOurs, NotOurs, NotOurs, Renewed}, answers)
		after := state(t, s)
		require.Len(t, after, 5, "nothing is created again")
		for _, k := range []string{"b", "c", marker} {
			require.Equal(t, before[k], after[k])
		}
		for k, entries := range map[string]int{"a": map[string]int{"plain": 1, "voted": 3}[name], "d": 1} {
			h := must(n.Inspect(bounded(t), k))(t)
			require.Equal(t, entries, h.Entries, name)
			require.InDelta(t, lease, h.Remaining, float64(slack))
		}
	}
}

// What Redis refuses for one key leaves that one unanswered and is the error.
func TestRenewRefused(t *testing.T) {
	s, n, vote := startActive(t)
	acquired(t, n, "k", ownA)
	s.Do(t, "ACL", "SETUSER", "default", "-pexpire")
	for name, renew := range renewals(t, n, vote) {
		answers := []Answer{Renewed, Renewed}
		err := renew([]string{"k", "free"}, []string{ownA, ownA}, []int{0, 0}, answers)
		require.Regexp(t, "can't run this command|ACL failure in script", err.Error())
		require.Equal(t, Refused, OutcomeOf(err))
		require.Equal(t, []Answer{Unanswered, NotOurs}, answers, name)
	}
}

// The embedded server's clock goes on while a script runs: the lock that the script has found expires under it.
func TestExpiredDuringAScript(t *testing.T) {
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	client := must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.Addr()}, ForceSingleClient: true, DisableCache: true}))(t)
	t.Cleanup(client.Close)
	n := NewNode(client)
	var slow atomic.Bool
	m.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
		if command == "HRANDFIELD" && slow.Load() {
			time.Sleep(600 * time.Millisecond)
		}
		return false
	})
	must(n.Acquire(bounded(t), "k", ownA, 500*time.Millisecond))(t)
	slow.Store(true)
	got := must(n.Acquire(bounded(t), "k", ownB, time.Second))(t)
	require.LessOrEqual(t, got.Remaining, time.Millisecond, "taken, or to be asked for again at once")
}
