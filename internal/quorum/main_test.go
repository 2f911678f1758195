package quorum

import (
	"context"
	"crypto/tls"
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
	lease    = 100 * time.Second // outlasts every test
	dialTime = time.Minute       // of clients
	marker   = "holdfast_node"
	token    = "redisson_lock_token:{k}"
)

// harness is a quorum's nodes.
type harness struct {
	t       *testing.T
	servers []*redistest.Server
	moved   []atomic.Pointer[redistest.Server] // where the node's address leads now; nil: to its first server
}

func newHarness(t *testing.T, nodes int, args ...string) *harness {
	t.Helper()
	r := &harness{t: t, moved: make([]atomic.Pointer[redistest.Server], nodes)}
	for range nodes {
		r.servers = append(r.servers, redistest.Start(t, append([]string{"--repl-diskless-sync-delay", "0"}, args...)...))
	}
	return r
}

// newActiveHarness is a harness with nodes that have their votes.
func newActiveHarness(t *testing.T, nodes int, args ...string) *harness {
	t.Helper()
	r := newHarness(t, nodes, args...)
	require.NoError(t, r.client().Bootstrap(bounded(t), true))
	return r
}

// do runs a command on a node as administrator.
func (r *harness) do(node int, args ...string) rueidis.RedisMessage {
	r.t.Helper()
	return r.server(node).Do(r.t, args...)
}

func (r *harness) server(node int) *redistest.Server {
	if s := r.moved[node].Load(); s != nil {
		return s
	}
	return r.servers[node]
}

// client is a process that uses the nodes, with a proxy of its own before each.
type client struct {
	*Quorum
	t     *testing.T
	ways  []*redistest.Proxy
	conns []chan net.Conn // the connections of each way, as dialled
	owner string          // that has the key by holds
}

// needGuard skips a test of the restart guard where the servers cannot have it.
func needGuard(t *testing.T) {
	t.Helper()
	redistest.NeedRedis7(t, "it keeps scripts over a restart, so there is no restart guard")
}

// part is a client of some of the nodes.
func (r *harness) part(from, to int) *client {
	r.t.Helper()
	some := &harness{t: r.t, servers: r.servers[from:to], moved: r.moved[from:to]}
	return some.client()
}

// client makes one with the same number of nodes, which reaches all of them. Calls may take
// long: a call that a test has not cut off comes through. It has the restart guard if the
// servers can have one.
func (r *harness) client(change ...func(*Config)) *client {
	r.t.Helper()
	conf := Config{NodeTimeout: 10 * time.Second, Lease: lease, Longest: lease, FenceExpiry: time.Hour, Unguarded: redistest.Before7(), Log: slog.New(slog.DiscardHandler)}
	for _, f := range change {
		f(&conf)
	}
	c := &client{t: r.t}
	var clients []rueidis.Client
	for i, s := range r.servers {
		way := redistest.NewProxy(r.t, s.Addr())
		dialled := make(chan net.Conn, 1000)
		c.ways, c.conns = append(c.ways, way), append(c.conns, dialled)
		clients = append(clients, s.Client(r.t, func(o *rueidis.ClientOption) {
			o.InitAddress = []string{way.Addr()}
			o.ForceSingleClient, o.Dialer.Timeout = true, dialTime
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				if moved := r.moved[i].Load(); moved != nil {
					addr = moved.Addr()
				}
				conn, err := d.DialContext(ctx, "tcp", addr)
				if err == nil {
					dialled <- conn
				}
				return conn, err
			}
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
	return c.Acquire(bounded(c.t), "k", owner, lease, 10)
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
	until(c.t, func() bool {
		_, err = c.nodes[node].voting(bounded(c.t))
		return scripts.OutcomeOf(err) != scripts.Unknown // else a connection was lost
	})
	return err
}

// idle waits until a node has no background work left.
func (c *client) idle(node int) {
	c.t.Helper()
	n := c.nodes[node]
	until(c.t, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return !n.kept && len(n.jobs) == 0
	})
}

// checked makes a check of its own.
func checked(t *testing.T, n *node, how scripts.CheckMode, of string) scripts.Standing {
	t.Helper()
	said, err := n.checkNow(bounded(t), func(ctx context.Context) (scripts.Standing, *scripts.Vote, error) {
		return n.check(ctx, how, of)
	})
	require.NoError(t, err)
	return said
}

// endOn makes one attempt to end a hold on a node.
func endOn(n *node, h *hold) error {
	came := make(chan error, 1)
	n.end(h, func(_ *node, _ released, err error) { came <- err })
	return <-came
}

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

// until polls cond, for conditions that send no event.
func until(t testing.TB, cond func() bool) {
	t.Helper()
	over := time.After(redistest.Patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-over:
			require.Fail(t, "it does not happen")
		}
	}
}

// bounded returns a context that outlasts any call that is not stuck.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
	t.Cleanup(cancel)
	return ctx
}

func requireNoVote(t *testing.T, said error) {
	t.Helper()
	require.True(t, errors.As(said, new(noVote)), "%v", said)
}
