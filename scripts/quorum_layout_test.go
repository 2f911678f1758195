package scripts

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// A node keeps Redisson's layout of a plain lock, and a marker.
func TestQuorumLayout(t *testing.T) {
	s, n, vote := startActive(t)
	ctx := bounded(t)
	listener, stop := s.Client(t).Dedicate()
	t.Cleanup(stop)
	received := make(chan rueidis.PubSubMessage, 8)
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { received <- m }})
	require.NoError(t, listener.Do(ctx, listener.B().Psubscribe().Pattern("*").Build()).Error())

	const key, gone = "sku:42", "holdfast_gone:{sku:42}:" + ownA
	keys := func(want ...string) {
		t.Helper()
		got := listed(t, s, "KEYS", "*")
		require.ElementsMatch(t, append(want, "holdfast_node"), got)
	}
	pttl := func(key string, want time.Duration) {
		t.Helper()
		require.InDelta(t, want.Milliseconds(), number(t, s, "PTTL", key), slackMillis)
	}
	holds := func(want map[string]string) {
		t.Helper()
		m := s.Do(t, "HGETALL", key)
		got, err := m.AsStrMap()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Regexp(t, `^[0-9a-f]+ [0-9a-f]{40} [0-9a-f]{40} 0 3600000 3$`, markerOf(t, s))
	require.EqualValues(t, -1, number(t, s, "PTTL", "holdfast_node"))

	for _, v := range []*Vote{vote, nil} {
		b, err := acquireVoted(n, ctx, v, key, ownA, lease, false)
		require.NoError(t, err)
		require.Equal(t, NodeReply{Acquired: Acquired{OK: true}}, b)
		keys(key)
		holds(map[string]string{ownA: "1"})
		pttl(key, lease)

		_, err = n.RenewVoted(ctx, v, time.Minute, []string{key}, []string{ownA}, []int{2}, make([]Answer, 1))
		require.NoError(t, err)
		keys(key)
		holds(map[string]string{ownA: "2"})
		pttl(key, time.Minute)

		require.NoError(t, undo(n, ctx, key, ownB, false))
		keys(key)
		require.NoError(t, undo(n, ctx, key, ownA, false))
		keys()

		b, err = acquireVoted(n, ctx, v, key, ownA, lease, true)
		require.NoError(t, err)
		require.True(t, b.OK)
		_, err = n.WriteFence(ctx, key, ownA, b.Clock+7, 7*24*time.Hour)
		require.NoError(t, err)
		keys(key, "redisson_lock_token:{sku:42}")
		pttl("redisson_lock_token:{sku:42}", 7*24*time.Hour)
		require.Equal(t, b.Clock+7, number(t, s, "GET", "redisson_lock_token:{sku:42}"))
		s.Do(t, "DEL", "redisson_lock_token:{sku:42}")

		for range 2 {
			require.NoError(t, undo(n, ctx, key, ownA, true))
			keys(gone)
			pttl(gone, time.Minute)
		}
		s.Do(t, "DEL", gone)
	}
	require.Empty(t, received, "nobody is notified of a round that failed")
	s.Do(t, "PUBLISH", "end", "")
	require.Equal(t, "end", (<-received).Channel)
}

// The scripts check their arguments themselves, before they write.
func TestF8_QuorumScriptsRefuseBadArguments(t *testing.T) {
	s, n, vote := startActive(t)
	bad := []string{"", "0", "-1", "1.5", "1e3", "0x10", " 1", "1 ", "nan", "inf", "9999999999999999999"}
	run := func(name string, sc script, keys []string, args ...string) {
		t.Helper()
		keys = append(append([]string{}, keys...), marker)[:len(keys)+1]
		if sc.sha != quorumRenew.sha && sc.sha != vote.acquire.sha {
			keys = keys[:len(keys)-1]
		}
		for _, held := range []bool{false, true} {
			s.Do(t, "DEL", "k")
			if held {
				acquired(t, n, "k", ownA)
			}
			before := state(t, s)
			m, err := n.run(bounded(t), sc, len(keys), append(keys, args...)...)
			if answers, bad := m.ToArray(); err == nil && bad == nil { // of an acquire
				err = refusedAlone(answers[0])
			}
			require.ErrorContains(t, err, name, "%q", args)
			require.Equal(t, Refused, OutcomeOf(err))
			require.Equal(t, before, state(t, s))
		}
	}
	two, three := []string{"k", "g"}, []string{"k", "g", "t"}
	for _, v := range bad {
		for _, sc := range []script{acquireEach, quorumAcquire, vote.acquire} {
			run("lease", sc, two, "2", ownA, v)
		}
		run("lease", vote.acquire, three, "3", ownA, v)
		run("lease", acquireFencedEach, three, "3", ownA, v, "1", "0")
		run("reserve", acquireFencedEach, three, "3", ownA, "1000", v, "0")
		run("lease", quorumRenew, two[:1], v, ownA, "0")
		run("last fence", quorumFence, two, ownA, v, "0")
		run("longest lease", quorumCheck, []string{marker}, "ab", v, "3", "mark")
		run("longest lease", quorumCheck, []string{marker}, "ab", v, "3", "activate", "ab")
		run("number of nodes", quorumCheck, []string{marker}, "ab", "1000", v, "mark")
		if v != "0" {
			run("counter expiry", quorumFence, two, ownA, "1", v)
		}
	}
	for _, v := range append(bad, "3", "10") {
		run("count", acquireEach, two, v, ownA, "1000")
	}
	for _, epoch := range []string{"", "x", "a b", "ab\n", "'"} {
		run("epoch", quorumCheck, []string{marker}, epoch, "1000", "3", "mark")
	}
	run("owners", quorumRenew, two[:1], "1000", ownA)
	run("owners", quorumRenew, two, "1000", ownA, "0")
	run("owners", quorumRenew, two[:1], "1000", ownA, "0", ownB, "0")
}
