package quorum

import (
	"bytes"
	"context"
	"net"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/batch"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// answered is a function that gets the answer of a node, and where the answer then is.
func answered[R any]() (done func(*node, R, error), came chan answer[R]) {
	came = make(chan answer[R], 1)
	return func(n *node, reply R, err error) { came <- answer[R]{n, reply, err} }, came
}

// beginAsk begins to ask a node for a hold, and beginEnd to end one there, in a batch with other
// calls that are about to be made.
func beginAsk(n *node, h *hold, fenced bool) <-chan answer[wire.NodeReply] {
	done, came := answered[wire.NodeReply]()
	n.ask(h, fenced, done)
	return came
}

func beginEnd(n *node, h *hold) <-chan answer[endReply] {
	done, came := answered[endReply]()
	n.end(h, done)
	return came
}

// first begins a batch that the test sends. Others join it until then.
func first[K comparable, R any](t *testing.T, b *batcher[K, R], kind K, h *hold) (*batch.Call[K, item[R], struct{}], <-chan answer[R]) {
	t.Helper()
	done, came := answered[R]()
	c, index := b.Join(kind, item[R]{h, done}, false)
	require.Zero(t, index)
	return c, came
}

// started is a new hold for which a node is about to be asked.
func (c *client) started(n *node, key, owner string) *hold {
	h := c.newHold(asking(key, owner, lease))
	h.markFlying(n)
	return h
}

// holdOn is a new hold of which a node has this part.
func (c *client) holdOn(n *node, key, owner string, p part) *hold {
	h := c.newHold(asking(key, owner, lease))
	h.parts[n.index] = p
	return h
}

// Acquires of one kind go out as a batch, and each gets its own answer.
func TestBatch(t *testing.T) {
	onNode(t, func(t *testing.T, _ *harness, c *client, n *node) {
		calls := c.requests(0, "")
		require.True(t, (<-beginAsk(n, c.newHold(asking("held", ownY, lease)), false)).reply.OK)
		for _, fenced := range []bool{false, true} {
			asks, mine := first(t, &n.asks, fenced, c.started(n, "free", fresh(ownX)))
			same := beginAsk(n, c.newHold(asking("held", ownX, lease)), fenced)
			require.Equal(t, 2, n.asks.Size(asks))
			before := calls.Load()
			n.asks.send(asks)
			require.Equal(t, !fenced, (<-mine).reply.OK) // else held by the first batch
			require.Equal(t, ownY, (<-same).reply.Holder)
			require.Equal(t, before+1, calls.Load())
		}
	})
}

// If Redis forbids one member of a batch, each member is asked for alone.
func TestBatch_FaultsOfOthers(t *testing.T) {
	onNode(t, func(t *testing.T, _ *harness, c *client, n *node) {
		c.ways[0].OwnWords("NOPERM No permissions to access a key", true, mentions("foreign"))
		asks, foreign := first(t, &n.asks, false, c.started(n, "foreign", ownX))
		mine := beginAsk(n, c.newHold(asking("key", ownX, lease)), false)
		require.Equal(t, 2, n.asks.Size(asks))
		n.asks.send(asks)
		require.Equal(t, wire.Refused, wire.OutcomeOf((<-foreign).err))
		a := <-mine
		require.NoError(t, a.err)
		require.True(t, a.reply.OK)
	})
}

// A member with a hold that is over before the batch goes out is left out; the others are
// asked for.
func TestBatch_OneIsOver(t *testing.T) {
	onNode(t, func(t *testing.T, r *harness, c *client, n *node) {
		asks, mine := first(t, &n.asks, false, c.started(n, "k", ownX))
		over := c.newHold(asking("over", ownX, lease))
		other := beginAsk(n, over, false)
		c.markOver(over, true, 0)
		n.asks.send(asks)
		require.True(t, (<-mine).reply.OK)
		require.Equal(t, errOver, (<-other).err)
		require.True(t, over.forgotten(n))
		require.Equal(t, errOver, (<-beginAsk(n, over, false)).err, "it is not sent later either")
		require.Equal(t, []string{ownX}, r.holders())
		require.False(t, locktest.Exists(t, r.servers[0], "over"))
	})
}

// Without an answer, each member of a batch is in doubt, and the node has been silent once.
func TestBatch_NoAnswer(t *testing.T) {
	onNode(t, func(t *testing.T, _ *harness, c *client, n *node) {
		c.ways[0].SwallowReply(1, mentions("two"))
		asks, one := first(t, &n.asks, false, c.started(n, "one", ownX))
		h := c.newHold(asking("two", ownX, lease))
		two := beginAsk(n, h, false)
		n.asks.send(asks)
		require.Equal(t, wire.Unknown, wire.OutcomeOf((<-one).err))
		require.Equal(t, wire.Unknown, wire.OutcomeOf((<-two).err))
		require.Equal(t, part{state: asked, doubt: 1}, h.part(n))
		require.EqualValues(t, 1, n.silent.Load())
	})
}

// garbled makes Redis refuse with an unknown code.
type garbled struct{ net.Conn }

func (g garbled) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	copy(b, bytes.ReplaceAll(b[:n], []byte("WRONGTYPE "), []byte("STRANGEXX ")))
	return n, err
}

// It is not known what a refusal with an unknown code has done to the lock.
func TestBatch_StrangeRefusal(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *harness) {
		redis := r.servers[0].Client(t, func(o *rueidis.ClientOption) {
			locktest.Dialled(o, func(c net.Conn) net.Conn { return garbled{c} })
		})
		q := New([]rueidis.Client{redis}, r.client().Config)
		defer q.Close()
		r.do(0, "SET", "wrong", "a string")
		n, h := q.nodes[0], q.newHold(asking("wrong", ownX, lease))
		err := (<-beginAsk(n, h, false)).err
		require.Equal(t, wire.Unknown, wire.OutcomeOf(err), "%v", err)
		require.Equal(t, part{state: asked, doubt: 1}, h.part(n))
	})
}

// Releases go out in batches as well, and each gets its own answer: released, nothing to
// release, refused.
func TestBatch_Releases(t *testing.T) {
	onNode(t, func(t *testing.T, r *harness, c *client, n *node) {
		for _, key := range []string{"held", "wrong"} {
			require.True(t, (<-beginAsk(n, c.newHold(asking(key, ownX, lease)), false)).reply.OK)
		}
		r.do(0, "SET", "wrong", "a string")
		calls := c.requests(0, "")
		ends, _ := first(t, &n.ends, struct{}{}, c.newHold(asking("other", ownX, lease)))
		end := func(key string) (*hold, <-chan answer[endReply]) {
			h := c.holdOn(n, key, ownX, part{state: present})
			c.markOver(h, true, 0)
			return h, beginEnd(n, h)
		}
		held, heldEnded := end("held")
		free, freeEnded := end("free")
		wrong, wrongEnded := end("wrong")
		require.Equal(t, 4, n.ends.Size(ends))
		hurried := c.newHold(asking("held", ownY, 9*c.NodeTimeout))
		hurried.parts[0] = part{state: asked}
		c.markOver(hurried, true, 0)
		require.NoError(t, (<-beginEnd(n, hurried)).err)
		require.Equal(t, 1, hurried.notOurs, "it does not wait for the others")

		before := calls.Load()
		n.ends.send(ends)
		require.NoError(t, (<-heldEnded).err)
		require.NoError(t, (<-freeEnded).err)
		require.Equal(t, wire.Refused, wire.OutcomeOf((<-wrongEnded).err))
		require.LessOrEqual(t, calls.Load(), before+2, "one, and the text of the script")
		require.Equal(t, []int{1, 0, 0}, []int{held.released, free.released, wrong.released})
		require.Equal(t, []int{0, 1, 0}, []int{held.notOurs, free.notOurs, wrong.notOurs})
	})
}

// A release waits for the answer to an acquire under way: it has to know whether a
// tombstone is needed.
func TestBatch_ReleaseAwaitsTheAnswer(t *testing.T) {
	onNode(t, func(t *testing.T, r *harness, c *client, n *node) {
		h := c.newHold(asking("k", ownX, lease))
		c.ways[0].HoldReplies(true)
		came := beginAsk(n, h, false)
		r.settles(ownX)
		c.markOver(h, true, 0)
		ended := beginEnd(n, h)
		r.settles(ownX)
		c.ways[0].HoldReplies(false)
		require.True(t, (<-came).reply.OK)
		require.NoError(t, (<-ended).err)
		require.Equal(t, 1, h.released)
		r.settles("")
		require.False(t, locktest.Exists(t, r.servers[0], gone), "a tombstone")
	})
}

// Nor does a release overtake an acquire that has yet to be sent. That acquire then is not
// sent, so the node has not answered.
func TestBatch_ReleaseBeforeTheAcquireIsSent(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *harness) {
		c := r.client()
		n := c.nodes[0]
		h := c.started(n, "k", ownX)
		asks, came := first(t, &n.asks, false, h)
		require.Len(t, c.markOver(h, true, 0), 1)
		ended := beginEnd(n, h)
		n.lastAnswer.Store(0)
		n.asks.send(asks)
		require.Equal(t, error(errOver), (<-came).err)
		require.False(t, n.fresh())
		require.NoError(t, (<-ended).err)
		require.True(t, h.forgotten(n))
		require.Zero(t, h.notOurs, "no node has denied it")
	})
}

// A node that has nothing of a hold is not asked to end it, and one that is away is not asked for
// anything: nobody waits for it.
func TestBatch_WhatIsNotSent(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, r *harness) {
		c := r.client()
		n, calls := c.nodes[0], 0
		n.ends.call = func(context.Context, struct{}, []ending) ([]endReply, error) { calls++; return nil, nil }
		require.NoError(t, (<-beginEnd(n, c.holdOn(n, "k", ownX, part{}))).err)
		n.silent.Store(awayAfter)
		n.why = errPending
		require.ErrorIs(t, (<-beginAsk(n, c.newHold(asking("k", ownX, lease)), false)).err, errPending)
		require.Equal(t, error(errAway), (<-beginEnd(n, c.holdOn(n, "k", ownX, part{state: present}))).err)
		require.Zero(t, calls)
	})
}
