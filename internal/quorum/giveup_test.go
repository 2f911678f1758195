package quorum

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// releases are a node's messages on the channel of "k" from now on.
func (r *harness) releases(node int) <-chan string {
	r.t.Helper()
	notified := make(chan string, 10)
	conn, giveBack := r.servers[node].Client(r.t).Dedicate()
	r.t.Cleanup(giveBack)
	conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { notified <- m.Message }})
	require.NoError(r.t, conn.Do(locktest.Bounded(r.t), conn.B().Subscribe().Channel(scripts.Channel("k")).Build()).Error())
	return notified
}

// The end of a round that others have kept from a quorum wakes no waiter: many failing
// rounds would keep waking one another. It ends only on nodes that may have it.
func TestFailedRoundNotifiesNoWaiter(t *testing.T) {
	r := newActiveHarness(t, 3)
	y := r.client()
	y.cutOff(0)
	y.holds(ownY)
	x := r.client()
	r.warm(x)
	notified := r.releases(0)
	sent := make(chan struct{})
	var asked [3]atomic.Int32
	for i, way := range x.ways {
		way.OnRequest(func(cmd []string) redistest.Verdict {
			if slices.Contains(cmd, ownX) {
				asked[i].Add(1)
			}
			return redistest.Pass
		})
		way.OnReply(func(cmd []string) (v redistest.Verdict) {
			if i > 0 && slices.Contains(cmd, ownX) {
				<-sent // the nodes that say no come last
			}
			return v
		})
	}
	failed := make(chan scripts.Acquired, 1)
	go func() {
		a, _ := x.get(ownX)
		failed <- a
	}()
	locktest.Await(t, func() bool { return r.holder(0) == ownX })
	close(sent)
	require.False(t, (<-failed).OK)
	locktest.Await(t, func() bool { return r.holder(0) == "" })
	r.do(0, "PUBLISH", scripts.Channel("k"), "the first")
	require.Equal(t, "the first", locktest.Within(t, notified))
	x.Close() // no end is under way any more
	require.EqualValues(t, 1, asked[1].Load())
	require.EqualValues(t, 1, asked[2].Load())
}

// A round that may have reached a quorum may have been taken for a hold: its end wakes the
// waiters.
func TestFailedRoundThatSpreadNotifies(t *testing.T) {
	r, x := newWarmClient(t, 3)
	notified := r.releases(0)
	answer := make(chan struct{})
	for _, way := range x.ways {
		way.OnReply(func(cmd []string) (v redistest.Verdict) {
			if slices.Contains(cmd, ownX) {
				<-answer
			}
			return v
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := x.Acquire(ctx, "k", ownX, lease, 10)
		failed <- err
	}()
	for i := range r.servers {
		locktest.Await(t, func() bool { return r.holder(i) == ownX })
	}
	cancel()
	require.Error(t, <-failed)
	close(answer)
	require.NotEmpty(t, locktest.Within(t, notified))
}

// A caller may have left and cleaned up before its round begins. Then no round begins, as
// nothing would end it.
func TestF4_CancelledBeforeTheRound(t *testing.T) {
	r, x := newWarmClient(t, 3)
	ctx, cancel := context.WithCancel(locktest.Bounded(t))
	cancel()
	for range 20 {
		_, err := x.Release(locktest.Bounded(t), "k", ownX, 0)
		require.NoError(t, err)
		a, err := x.Acquire(ctx, "k", ownX, lease, 10)
		require.False(t, a.OK)
		require.Equal(t, scripts.Refused, scripts.OutcomeOf(err), "%v", err)
		require.Empty(t, r.holder(0)+r.holder(1)+r.holder(2))
	}
}

// A quorum that comes after the owner was given up is no win.
func TestF4_GivenUpBeforeTheQuorum(t *testing.T) {
	q := newActiveHarness(t, 3).client().Quorum
	for _, over := range []bool{false, true} {
		h := q.newHold("k", ownX, lease)
		if over {
			q.finish(h, true, 0)
		}
		r := &round{q: q, hold: h, said: make([]scripts.NodeReply, 3), errs: make([]error, 3), yes: 3}
		_, _, yes, won := r.won(locktest.Bounded(t))
		require.True(t, yes)
		require.Equal(t, !over, won)
	}
}
