package quorum

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// Owners of different clients.
const (
	ownA = "00000001-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownB = "00000002-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownX = "00000003-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownY = "00000004-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownZ = "00000005-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
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
)

// harness is a quorum's nodes.
type harness struct {
	t       *testing.T
	servers []*redistest.Server
}

func newHarness(t *testing.T, nodes int, args ...string) *harness {
	t.Helper()
	r := &harness{t: t}
	for range nodes {
		r.servers = append(r.servers, redistest.Start(t, append([]string{"--repl-diskless-sync-delay", "0"}, args...)...))
	}
	return r
}

// newActiveHarness is a harness with nodes that have their votes.
func newActiveHarness(t *testing.T, nodes int) *harness {
	t.Helper()
	r := newHarness(t, nodes)
	require.NoError(t, r.client().Bootstrap(locktest.Bounded(t), true))
	return r
}

// newWarmClient is such a harness, with a client that knows its nodes.
func newWarmClient(t *testing.T, nodes int, change ...func(*Config)) (*harness, *client) {
	t.Helper()
	r := newActiveHarness(t, nodes)
	c := r.client(change...)
	r.warm(c)
	return r, c
}

// do runs a command on a node as administrator.
func (r *harness) do(node int, args ...string) rueidis.RedisMessage {
	r.t.Helper()
	return r.servers[node].Do(r.t, args...)
}

// client is a process that uses the nodes, with a proxy of its own before each.
type client struct {
	*Quorum
	t       *testing.T
	ways    []*redistest.Proxy
	sockets []*locktest.Sockets // the connections to each way
	owner   string              // that has the key by holds
}

// needGuard skips a test of the restart guard where the servers cannot have it.
func needGuard(t *testing.T) {
	t.Helper()
	redistest.NeedRedis7(t, "it keeps scripts over a restart, so there is no restart guard")
}

// part is a client of some of the nodes.
func (r *harness) part(from, to int) *client {
	r.t.Helper()
	return (&harness{t: r.t, servers: r.servers[from:to]}).client()
}

// client makes one with the same number of nodes, which reaches all of them. Calls may take
// long: a call that a test has not cut off comes through. It has the restart guard if the
// servers can have one.
func (r *harness) client(change ...func(*Config)) *client {
	r.t.Helper()
	conf := Config{NodeTimeout: 10 * time.Second, Lease: lease, Longest: lease, FenceExpiry: time.Hour, Unguarded: redistest.Before7(), Logger: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&conf)
	}
	c := &client{t: r.t}
	var clients []rueidis.Client
	for _, s := range r.servers {
		way, sockets := redistest.NewProxy(r.t, s.Addr()), new(locktest.Sockets)
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

// cutOff keeps the client from some nodes, as if they were down.
func (c *client) cutOff(nodes ...int) {
	for _, i := range nodes {
		c.ways[i].Refuse(true)
		c.ways[i].Cut()
	}
}

func (c *client) reach(nodes ...int) {
	for _, i := range nodes {
		c.ways[i].Refuse(false)
	}
}

// get makes one round for the key "k".
func (c *client) get(owner string) (scripts.Acquired, error) {
	return c.Acquire(locktest.Bounded(c.t), "k", owner, lease, 10)
}

// has makes one round, which must succeed.
func (c *client) has(owner string) {
	c.t.Helper()
	a, err := c.get(owner)
	require.NoError(c.t, err)
	require.True(c.t, a.OK)
}

// holds makes rounds until the client has the key: it may take a while to notice that a
// node is back.
func (c *client) holds(owner string) scripts.Acquired {
	c.t.Helper()
	var a scripts.Acquired
	for i := 0; ; i++ {
		var err error
		c.owner = owner + fmt.Sprint(i)
		if a, err = c.get(c.owner); err == nil && a.OK {
			return a
		}
		require.Less(c.t, i, 100, "%v %v", a, err)
	}
}

// refused makes rounds, all of which must fail, until every node has answered, and returns
// the last answer of each.
func (c *client) refused(owner string) []error {
	c.t.Helper()
	said := make([]error, len(c.nodes))
	for i := range said {
		said[i] = errPending
	}
	for i := 0; i < 5 || slices.Contains(said, errPending); i++ {
		a, err := c.get(owner + fmt.Sprint(i))
		require.False(c.t, a.OK, "a second holder")
		if err == nil {
			err = a.Why
		}
		var e *Error
		require.ErrorAs(c.t, err, &e)
		for j, n := range e.Nodes {
			// A connection that is found dead only now gave no answer.
			if n.Err != errPending && !errors.Is(n.Err, io.EOF) && !errors.As(n.Err, new(*net.OpError)) {
				said[j] = n.Err
			}
		}
		require.Less(c.t, i, 1000, "%v", said)
	}
	return said
}

// vote says why a node has no vote, as this client sees it; nil if it has one.
func (c *client) vote(node int) (err error) {
	c.t.Helper()
	locktest.Await(c.t, func() bool {
		_, err = c.nodes[node].voting(locktest.Bounded(c.t))
		return scripts.OutcomeOf(err) != scripts.Unknown // else a connection was lost
	})
	return err
}

// idle waits until a node has no background work left.
func (c *client) idle(node int) {
	c.t.Helper()
	n := c.nodes[node]
	locktest.Await(c.t, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return !n.kept && len(n.jobs) == 0
	})
}

// checked makes a check of its own.
func checked(t *testing.T, n *node, how scripts.CheckMode, of string) scripts.Standing {
	t.Helper()
	said, err := n.checkNow(locktest.Bounded(t), func(ctx context.Context) (scripts.Standing, *scripts.Vote, error) {
		return n.check(ctx, how, of)
	})
	require.NoError(t, err)
	return said
}

// beginEnd makes one attempt to end a hold on a node, and endOn returns with the answer.
func beginEnd(n *node, h *hold) <-chan error {
	came := make(chan error, 1)
	n.end(h, func(_ *node, _ released, err error) { came <- err })
	return came
}

func endOn(n *node, h *hold) error { return <-beginEnd(n, h) }

// holder is the holder of "k" on a node, or "".
func (r *harness) holder(node int) string {
	r.t.Helper()
	m := r.do(node, "HKEYS", "k")
	owners, err := m.AsStrSlice()
	require.NoError(r.t, err)
	return strings.Join(owners, ",")
}

// markerOf is a node's marker, or "".
func (r *harness) markerOf(node int) string {
	r.t.Helper()
	m := r.do(node, "GET", marker)
	text, err := m.ToString()
	if rueidis.IsRedisNil(err) {
		return ""
	}
	require.NoError(r.t, err)
	return text
}

func requireNoVote(t *testing.T, said error) {
	t.Helper()
	require.True(t, errors.As(said, new(noVote)), "%v", said)
}
