package quorum

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Owners of different clients.
const (
	ownA = "00000001-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownB = "00000002-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownX = "00000003-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownY = "00000004-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownW = "00000006-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownO = "00000007-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
)

var owners atomic.Int64

// fresh is an unused owner of the client of own.
func fresh(own string) string { return own + strconv.FormatInt(owners.Add(1), 10) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	lease  = 100 * time.Second // outlasts every test
	marker = "holdfast_node"
	token  = "redisson_lock_token:{k}"
	gone   = "holdfast_gone:{k}:" + ownX
)

// harness is a quorum's nodes.
type harness struct {
	t       *testing.T
	servers []locktest.Server
}

// onFresh runs a test in virtual time on nodes that have no vote yet.
func onFresh(t *testing.T, nodes int, test func(t *testing.T, r *harness)) {
	synctest.Test(t, func(t *testing.T) {
		r := &harness{t: t}
		for _, s := range sim.NewWorld(t, 1, 0, nodes).Servers {
			r.servers = append(r.servers, s)
		}
		test(t, r)
	})
}

// inBubble runs a test in virtual time on nodes that have their votes.
func inBubble(t *testing.T, nodes int, test func(t *testing.T, r *harness)) {
	onFresh(t, nodes, func(t *testing.T, r *harness) {
		require.NoError(t, r.client().DeclareNothingHeld(t.Context()))
		test(t, r)
	})
}

// onNode runs a test in virtual time on one node, of a client that knows its vote.
func onNode(t *testing.T, test func(t *testing.T, r *harness, c *client, n *node)) {
	inBubble(t, 1, func(t *testing.T, r *harness) {
		c := r.warm()
		test(t, r, c, c.nodes[0])
	})
}

// inBubbles runs a test in virtual time once for each case.
func inBubbles[C any](t *testing.T, nodes int, cases map[string]C, test func(t *testing.T, r *harness, c C)) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nodes, func(t *testing.T, r *harness) { test(t, r, c) })
		})
	}
}

// guards are the two kinds of quorum.
var guards = map[string]func(*Config){
	"guarded":   func(*Config) {},
	"unguarded": func(c *Config) { c.Unguarded = true },
}

// onServers is three real nodes that have no vote yet, and can be replicas of one another.
func onServers(t *testing.T) *harness {
	t.Helper()
	redistest.NeedRedis7(t, "it keeps scripts over a restart, so there is no restart guard")
	r := &harness{t: t}
	for range 3 {
		r.servers = append(r.servers, redistest.Start(t, "--repl-diskless-sync-delay", "0"))
	}
	return r
}

// sim is a node in virtual time.
func (r *harness) sim(node int) *sim.Server { return r.servers[node].(*sim.Server) }

// do runs a command on a node as administrator, and onAll on all.
func (r *harness) do(node int, args ...string) *rueidis.RedisMessage {
	r.t.Helper()
	return r.servers[node].Do(r.t, args...)
}

func (r *harness) onAll(args ...string) {
	r.t.Helper()
	for i := range r.servers {
		r.do(i, args...)
	}
}

// text is the reply to a command, or "" for nil.
func (r *harness) text(node int, args ...string) string {
	r.t.Helper()
	m := r.do(node, args...)
	text, err := m.ToString()
	if !rueidis.IsRedisNil(err) {
		require.NoError(r.t, err)
	}
	return text
}

// client is a process that uses the nodes, with a proxy of its own before each.
type client struct {
	*Quorum
	t       *testing.T
	ways    []*redistest.Proxy
	sockets []*locktest.Sockets // the connections to each way
	owner   string              // that has the key by holds
}

// part is a client of some of the nodes.
func (r *harness) part(from, to int) *client {
	r.t.Helper()
	return (&harness{t: r.t, servers: r.servers[from:to]}).client()
}

// client makes one with the same number of nodes, which reaches all of them. Calls may take
// long: a call that a test has not cut off comes through.
func (r *harness) client(change ...func(*Config)) *client {
	r.t.Helper()
	expiry := time.Hour
	conf := Config{NodeTimeout: 10 * time.Second, MaxLease: lease}
	conf.Lease, conf.FenceExpiry, conf.Logger = lease, &expiry, slog.New(slog.DiscardHandler)
	for _, f := range change {
		f(&conf)
	}
	c := &client{t: r.t}
	var clients []rueidis.Client
	for _, s := range r.servers {
		way, sockets := s.Proxy(r.t), new(locktest.Sockets)
		way.SetDelay(time.Millisecond/2, time.Millisecond/2)
		c.ways, c.sockets = append(c.ways, way), append(c.sockets, sockets)
		clients = append(clients, s.Client(r.t, sockets.Dialled, func(o *rueidis.ClientOption) {
			o.InitAddress = []string{way.Addr()}
			o.ForceSingleClient, o.Dialer.Timeout = true, time.Minute
		}))
	}
	c.Quorum = New(clients, conf)
	r.t.Cleanup(c.Close)
	return c
}

// warm is a client that knows the votes of all nodes.
func (r *harness) warm(change ...func(*Config)) *client {
	r.t.Helper()
	c := r.client(change...)
	a, err := c.Acquire(r.t.Context(), asking("warm", ownW, lease))
	require.NoError(r.t, err)
	require.True(r.t, a.OK)
	for _, n := range c.nodes {
		locktest.Await(r.t, func() bool { return c.holdOf(ownW).part(n).state >= present })
		require.True(r.t, c.Unguarded || n.guard.current() != nil)
	}
	return c
}

// settled is a warm client with owner ownX, which has the key on all nodes, with no work left.
func (r *harness) settled(change ...func(*Config)) (*client, *hold) {
	r.t.Helper()
	x := r.warm(change...)
	x.has(ownX)
	settle()
	return x, x.holdOf(ownX)
}

// settle lets all end that calls have left to the background, where nothing hangs.
func settle() { time.Sleep(time.Second) }

// cutOff keeps the client from some nodes, as if they were down.
func (c *client) cutOff(nodes ...int) {
	for _, i := range nodes {
		c.ways[i].Refuse(true)
		c.ways[i].Cut()
	}
}

// mentions says of commands whether they have a word.
func mentions(word string) func(cmd []string) bool {
	return func(cmd []string) bool { return slices.Contains(cmd, word) }
}

// requests counts those to a node from now on, with a word if there is one.
func (c *client) requests(node int, word string) *atomic.Int64 {
	var n atomic.Int64
	c.ways[node].OnRequest(redistest.Seeing(func(cmd []string) bool { return word == "" || mentions(word)(cmd) }, func() { n.Add(1) }))
	return &n
}

func asking(key, owner string, lease time.Duration) wire.AcquireRequest {
	return wire.AcquireRequest{Key: key, Owner: owner, Lease: lease, Fencing: wire.Fencing{Reserve: 10}}
}

// get makes one round for the key "k".
func (c *client) get(owner string) (wire.AcquireReply, error) {
	return c.Acquire(c.t.Context(), asking("k", owner, lease))
}

// has makes one round, which must succeed.
func (c *client) has(owner string) {
	c.t.Helper()
	a, err := c.get(owner)
	require.NoError(c.t, err)
	require.True(c.t, a.OK)
}

// releases ends the hold of an owner that has the key, and whose last fence is given: 0 gives no numbers back.
func (c *client) releases(owner string, lastFence int64) {
	c.t.Helper()
	reply, err := c.Release(c.t.Context(), wire.ReleaseRequest{Key: "k", Owner: owner, LastFence: lastFence})
	require.NoError(c.t, err)
	require.True(c.t, reply.Ours)
}

// takes makes rounds until the client has the key: it may take a while to notice that a node
// is back.
func (c *client) takes(own string) (a wire.AcquireReply) {
	c.t.Helper()
	locktest.Await(c.t, func() bool {
		var err error
		c.owner = fresh(own)
		a, err = c.get(c.owner)
		return err == nil && a.OK
	})
	return a
}

// refused makes rounds, all of which must fail, until every node has answered, and returns
// the last answer of each.
func (c *client) refused(own string) []error {
	c.t.Helper()
	answers, rounds := slices.Repeat([]error{errPending}, len(c.nodes)), 0
	locktest.Await(c.t, func() bool {
		a, err := c.get(fresh(own))
		require.False(c.t, a.OK, "a second holder")
		if err == nil {
			err = a.Why
		}
		var e *Error
		require.ErrorAs(c.t, err, &e)
		for i, n := range e.Nodes {
			if errors.Is(n.Err, holdfast.ErrHeld) || wire.OutcomeOf(n.Err) != wire.Unknown { // else a connection was lost
				answers[i] = n.Err
			}
		}
		rounds++
		return rounds >= 5 && !slices.Contains(answers, errPending)
	})
	return answers
}

// vote says why a node has no vote, as this client sees it; nil if it has one.
func (c *client) vote(node int) (err error) {
	c.t.Helper()
	locktest.Await(c.t, func() bool {
		_, err = c.nodes[node].voting(c.t.Context())
		return wire.OutcomeOf(err) != wire.Unknown // else a connection was lost
	})
	return err
}

// requireNoVote requires that a node has no vote, as this client sees it.
func (c *client) requireNoVote(node int) {
	c.t.Helper()
	require.ErrorAs(c.t, c.vote(node), new(noVote))
}

// checked makes a check of its own.
func checked(t *testing.T, n *node, how wire.CheckMode, of string) wire.Standing {
	t.Helper()
	s, err := n.checkNow(t.Context(), func(ctx context.Context) (wire.Standing, error) {
		return n.check(ctx, how, of)
	})
	require.NoError(t, err)
	return s
}

// holders are the holders of "k" on each node; "": none.
func (r *harness) holders() (all []string) {
	r.t.Helper()
	for _, s := range r.servers {
		all = append(all, append(locktest.Strings(r.t, s, "HKEYS", "k"), "")[0])
	}
	return all
}

// settles requires the holders of "k", once all is done that is left to the background.
func (r *harness) settles(want ...string) {
	r.t.Helper()
	settle()
	require.Equal(r.t, want, r.holders())
}

// markers are the nodes' markers; "": none.
func (r *harness) markers() (all []string) {
	r.t.Helper()
	for i := range r.servers {
		all = append(all, r.text(i, "GET", marker))
	}
	return all
}
