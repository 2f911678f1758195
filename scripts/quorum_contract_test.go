package scripts

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// everyQuorumReply brings about every reply of every script of a quorum. n has no
// recorder.
func everyQuorumReply(t *testing.T, r *recorder, n *Node, vote *Vote, do func(args ...string)) {
	t.Helper()
	ctx, recorded := bounded(t), NewNode(r)
	call := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	for _, v := range []*Vote{nil, vote} {
		for _, ask := range []func(owner string) (NodeReply, error){
			func(owner string) (NodeReply, error) { return acquireVoted(recorded, ctx, v, "k", owner, lease, false) },
			func(owner string) (NodeReply, error) { return acquireVoted(recorded, ctx, v, "k", owner, lease, true) },
		} {
			get := func(owner string) { call(ask(owner)) }
			get(ownA)
			get(ownB)
			call(nil, undo(recorded, ctx, "k", ownA, true))
			get(ownA)
			do("SET", marker, "other")
			if v != nil {
				get(ownB)
			}
			do("SET", marker, vote.marker)
			do("DEL", "k", counter("k"), tombstone("k", ownA))
			do("SET", "k", "x")
			_, err := ask(ownA)
			require.Equal(t, Refused, OutcomeOf(err))
			do("DEL", "k")
		}
	}
	call(nil, undo(recorded, ctx, "k", ownA, false))

	call(recorded.WriteFence(ctx, "k", ownA, 1, 0))
	call(n.Acquire(ctx, "k", ownA, lease))
	call(recorded.WriteFence(ctx, "k", ownA, 1, 0))

	do("SET", "string", "x")
	answers := make([]Answer, 3)
	call(recorded.RenewVoted(ctx, vote, lease, []string{"k", "free", "string"}, []string{ownA, ownA, ownA}, make([]int, 3), answers))
	require.Equal(t, []Answer{Renewed, NotOurs, NotOurs}, answers)

	everyEnd := []Ending{
		{Key: "k", Owner: ownB, Notify: true}, {Key: "free", Owner: ownA}, {Key: "string", Owner: ownA, Notify: true, Doubt: true},
		{Key: "k", Owner: ownB, LastFence: 1}, {Key: "other", Owner: ownA, LastFence: 1}, {Key: "more", Owner: ownA},
	}
	listener, stop := recorded.client.Dedicate()
	defer stop()
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})
	require.NoError(t, listener.Do(ctx, listener.B().Subscribe().Channel(Channel("k")).Build()).Error())
	do("DEL", "k")
	for _, want := range []int{1, -1} {
		call(n.Acquire(ctx, "k", ownB, lease))
		ends := make([]Result[Released], len(everyEnd))
		call(nil, recorded.EndEach(ctx, everyEnd, ends))
		require.Equal(t, want, ends[0].Value.Listeners)
		do("ACL", "SETUSER", "default", "-publish")
	}
	do("ACL", "SETUSER", "default", "+publish")

	// A check runs on a connection of its own.
	for _, began := range [][]string{nil, {"none"}} {
		args := append([]string{marker, newEpoch(), millis(longest), "3", string(Mark)}, began...)
		cmd := r.B().Eval().Script(quorumCheck.text).Numkeys(1).Arg(args...).Build()
		call(nil, r.Do(ctx, cmd).Error())
	}
}
