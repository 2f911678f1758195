package quorum

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/scripts"
)

// releases are a node's messages on the channel of "k" from now on.
func (r *harness) releases(node int) <-chan string {
	r.t.Helper()
	messages := make(chan string, 10)
	conn, giveBack := r.servers[node].Client(r.t).Dedicate()
	r.t.Cleanup(giveBack)
	conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { messages <- m.Message }})
	require.NoError(r.t, conn.Do(r.t.Context(), conn.B().Subscribe().Channel(scripts.Channel("k")).Build()).Error())
	return messages
}

// The end of a round that others have kept from a quorum wakes no waiter: many failing
// rounds would keep waking one another. It ends only on nodes that may have it.
func TestFailedRoundNotifiesNoWaiter(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		y := r.client()
		y.cutOff(0)
		y.takes(ownY)
		x, messages := r.warm(), r.releases(0)
		first, second := x.requests(1, ownX), x.requests(2, ownX)
		a, _ := x.get(ownX)
		require.False(t, a.OK)
		r.settles("", y.owner, y.owner)
		require.Equal(t, []int64{1, 1}, []int64{first.Load(), second.Load()}, "they said no")
		require.Empty(t, messages)
	})
}

// A round that may have reached a quorum may have been taken for a hold: its end wakes the
// waiters.
func TestFailedRoundThatSpreadNotifies(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x, messages := r.warm(), r.releases(0)
		for _, way := range x.ways {
			way.HoldReplies(true)
		}
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := x.Acquire(ctx, asking("k", ownX, lease))
			failed <- err
		}()
		r.settles(ownX, ownX, ownX)
		cancel()
		require.Error(t, <-failed)
		for _, way := range x.ways {
			way.HoldReplies(false)
		}
		require.NotEmpty(t, locktest.Within(t, messages))
	})
}

// A caller may have left and cleaned up before its round begins. Then no round begins, as
// nothing would end it.
func TestF4_CancelledBeforeTheRound(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x := r.warm()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 {
			_, err := x.Release(t.Context(), wire.ReleaseRequest{Key: "k", Owner: ownX})
			require.NoError(t, err)
			a, err := x.Acquire(ctx, asking("k", ownX, lease))
			require.False(t, a.OK)
			require.Equal(t, wire.Refused, wire.OutcomeOf(err), "%v", err)
			r.settles("", "", "")
		}
	})
}

// A quorum that comes after the owner was given up is no win.
func TestF4_GivenUpBeforeTheQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		q := r.client().Quorum
		for _, over := range []bool{false, true} {
			h := q.newHold(asking("k", ownX, lease))
			if over {
				q.markOver(h, true, 0)
			}
			r := &round{q: q, hold: h, replies: make([]wire.NodeReply, 3), errs: make([]error, 3), yes: 3}
			require.Equal(t, !over, r.conclude(t.Context()).OK)
		}
	})
}
