package quorum

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/batch"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

type acquires = batch.Call[bool, item[scripts.NodeReply], struct{}]

// reply is the answer of a node.
type reply struct {
	scripts.NodeReply
	err error
}

// askFor begins to ask a node, in a batch with other calls that are about to be made.
func askFor(n *node, key, owner string, lease time.Duration, fenced bool) <-chan reply {
	return beginAsk(n, n.q.newHold(key, owner, lease), fenced)
}

func beginAsk(n *node, h *hold, fenced bool) <-chan reply {
	came := make(chan reply, 1)
	n.ask(h, fenced, func(_ *node, b scripts.NodeReply, err error) { came <- reply{b, err} })
	return came
}

// first begins a batch that the test sends. Others join it until then.
func first(t *testing.T, n *node, key, owner string, fenced bool) (*acquires, <-chan reply) {
	t.Helper()
	came := make(chan reply, 1)
	h := n.q.newHold(key, owner, lease)
	require.True(t, h.start(n))
	g, place := n.asks.Join(fenced, item[scripts.NodeReply]{h, func(_ *node, b scripts.NodeReply, err error) { came <- reply{b, err} }}, false)
	require.Zero(t, place)
	return g, came
}

// Acquires of one kind go out as a batch, and each gets its own answer.
func TestBatch(t *testing.T) {
	c := newActiveHarness(t, 1).client()
	n := c.nodes[0]
	_, err := n.voting(locktest.Bounded(t))
	require.NoError(t, err)
	var calls atomic.Int64
	c.ways[0].OnRequest(func([]string) redistest.Verdict {
		calls.Add(1)
		return redistest.Pass
	})
	require.True(t, (<-askFor(n, "held", ownY, lease, false)).OK)

	for _, fenced := range []bool{false, true} {
		g, mine := first(t, n, "free", fresh(ownX), fenced)
		same := askFor(n, "held", ownX, lease, fenced)
		require.Equal(t, 2, n.asks.Size(g))
		before := calls.Load()
		n.asks.send(g)
		require.Equal(t, !fenced, (<-mine).OK) // else held by the first batch
		require.Equal(t, ownY, (<-same).Holder)
		require.Equal(t, before+1, calls.Load())
	}
}

// A reply with fewer or more answers than asks is no reply: it is not known which answer
// belongs to which ask, and a missing one must not pass for an answer.
func TestBatch_AsManyAnswersAsAsks(t *testing.T) {
	c := newActiveHarness(t, 1).client()
	n := c.nodes[0]
	vote, err := n.voting(locktest.Bounded(t))
	require.NoError(t, err)
	asks := []scripts.Ask{{Key: "a", Owner: ownX, Lease: lease}, {Key: "b", Owner: ownX, Lease: lease}}
	for _, places := range []int{1, 3} {
		nodeReplies := make([]scripts.NodeReply, places)
		err = n.script.AcquireVoted(locktest.Bounded(t), vote, false, asks, nodeReplies)
		require.Equal(t, scripts.Unknown, scripts.OutcomeOf(err), "%v", err)
		require.Equal(t, make([]scripts.NodeReply, places), nodeReplies)
	}
	require.NoError(t, n.script.AcquireVoted(locktest.Bounded(t), vote, false, asks, make([]scripts.NodeReply, 2)))
}

// If Redis forbids one member of a batch, each member is asked for alone.
func TestBatch_FaultsOfOthers(t *testing.T) {
	r, c := newWarmClient(t, 1)
	n := c.nodes[0]
	r.do(0, "ACL", "SETUSER", "default", "resetkeys", "~key*", "~holdfast*")
	g, foreign := first(t, n, "foreign", ownX, false)
	mine := askFor(n, "key", ownX, lease, false)
	require.Equal(t, 2, n.asks.Size(g))
	n.asks.send(g)
	require.Equal(t, scripts.Refused, scripts.OutcomeOf((<-foreign).err))
	a := <-mine
	require.NoError(t, a.err)
	require.True(t, a.OK)

	ended := func(key string) (*hold, chan error) {
		h, came := c.newHold(key, ownX, lease), make(chan error, 1)
		h.parts[0] = part{state: present}
		return h, came
	}
	h, refused := ended("foreign")
	last, place := n.ends.Join(struct{}{}, ending{h, func(_ *node, _ released, err error) { refused <- err }}, false)
	require.Zero(t, place)
	h, ours := ended("key")
	n.end(h, func(_ *node, _ released, err error) { ours <- err })
	require.Equal(t, 2, n.ends.Size(last))
	n.ends.send(last)
	require.Equal(t, scripts.Refused, scripts.OutcomeOf(<-refused))
	require.NoError(t, <-ours)
	require.Equal(t, 1, h.released)
	r.do(0, "ACL", "SETUSER", "default", "allkeys")
}

// A member with a hold that is over before the batch goes out is left out; the others are
// asked for.
func TestBatch_OneIsOver(t *testing.T) {
	r := newActiveHarness(t, 1)
	c := r.client()
	n := c.nodes[0]
	_, err := n.voting(locktest.Bounded(t))
	require.NoError(t, err)
	g, mine := first(t, n, "k", ownX, false)
	over := c.newHold("over", ownX, lease)
	other := beginAsk(n, over, false)
	c.finish(over, true, 0)
	n.asks.send(g)
	require.True(t, (<-mine).OK)
	require.Equal(t, errOver, (<-other).err)
	require.True(t, over.forgotten(n))
	require.Equal(t, ownX, r.holder(0))
	require.False(t, locktest.Exists(t, r.servers[0], "over"))
}

// Without an answer, each member of a batch is in doubt, and the node has been silent once.
func TestBatch_NoAnswer(t *testing.T) {
	_, c := newWarmClient(t, 1, func(conf *Config) { conf.NodeTimeout = 2 * time.Second })
	n := c.nodes[0]
	hold := c.ways[0].SwallowReply(1, func(cmd []string) bool { return slices.Contains(cmd, "two") })
	g, one := first(t, n, "one", ownX, false)
	h := c.newHold("two", ownX, lease)
	two := beginAsk(n, h, false)
	n.asks.send(g)
	require.Equal(t, scripts.Unknown, scripts.OutcomeOf((<-one).err))
	require.Equal(t, scripts.Unknown, scripts.OutcomeOf((<-two).err))
	<-hold
	require.Equal(t, part{state: asked, doubt: 1}, h.part(n))
	n.mu.Lock()
	defer n.mu.Unlock()
	require.Equal(t, 1, n.silent)
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
	r := newActiveHarness(t, 1)
	client := r.servers[0].Client(t, func(o *rueidis.ClientOption) {
		o.ForceSingleClient = true
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := d.DialContext(ctx, "tcp", addr)
			return garbled{conn}, err
		}
	})
	q := New([]rueidis.Client{client}, Config{NodeTimeout: 10 * time.Second, Lease: lease, Longest: lease, Unguarded: redistest.Before7(), Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(q.Close)
	r.do(0, "SET", "wrong", "a string")
	h := q.newHold("wrong", ownX, lease)
	came := make(chan error, 1)
	q.nodes[0].ask(h, false, func(_ *node, _ scripts.NodeReply, err error) { came <- err })
	err := <-came
	require.Equal(t, scripts.Unknown, scripts.OutcomeOf(err), "%v", err)
	require.Equal(t, part{state: asked, doubt: 1}, h.part(q.nodes[0]))
}
