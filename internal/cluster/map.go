// Package cluster knows which node of a Redis Cluster has which slot. rueidis also knows but does not say, and
// renewals, heartbeats and subscriptions go by node.
//
// A [Map] learns nothing by itself: it is as old as its last Refresh. A caller that finds it wrong, by an answer MOVED,
// a subscription that the server ended, or a connection that broke, calls Refresh and looks again.
package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/loop"
)

const (
	answerTime = time.Second           // longest wait for a node's answer
	stagger    = 20 * time.Millisecond // from asking one node to asking the next
)

// Map finds the node of a name. All methods may be called concurrently.
type Map struct {
	client  rueidis.Client // immutable
	table   atomic.Pointer[table]
	sharded atomic.Pointer[bool] // nil while unknown

	mu     sync.Mutex
	flight *flight // guarded by mu; nil if none is under way
}

// table is immutable.
type table struct {
	nodes []string      // addresses of the masters; the first is "", nobody
	owner [Slots]uint16 // of each slot, by its place in nodes
}

// flight is one question for the slots, which all calls of Refresh share that come while it is under way.
type flight struct {
	done chan struct{}
	err  error // written before done is closed
}

var errNoNode = errors.New("cluster: the client knows no node")

// New returns a Map of the Redis Cluster of the client, without I/O. It knows no node before the first Refresh.
func New(client rueidis.Client) *Map {
	m := &Map{client: client}
	m.table.Store(&table{nodes: []string{""}})
	return m
}

// Node returns the address of the master that has the slot of the name, or "" while that is unknown. It is the
// name that the node has in client.Nodes(), once the client also knows it.
func (m *Map) Node(name string) string {
	t := m.table.Load()
	return t.nodes[t.owner[Slot(name)]]
}

// Masters returns the addresses of all masters that have slots.
func (m *Map) Masters() []string { return slices.Clone(m.table.Load().nodes[1:]) }

// Refresh asks the cluster again which node has which slot (CLUSTER SLOTS). Any node that answers will do, so that a
// dead one does not delay it. Callers share a call that is under way. It returns an error if ctx ends or no node has
// answered within 1 s; then the Map is as before.
func (m *Map) Refresh(ctx context.Context) error {
	m.mu.Lock()
	f := m.flight
	if f == nil {
		f = &flight{done: make(chan struct{})}
		m.flight = f
		go m.refresh(f) // ends within answerTime
	}
	m.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Map) refresh(f *flight) {
	f.err = m.ask(context.Background(), func(addr string, r rueidis.RedisResult) error {
		ranges, err := r.ToArray()
		if err != nil {
			return err
		}
		t, err := parse(ranges, addr)
		if err == nil {
			m.table.Store(t)
		}
		return err
	}, "CLUSTER", "SLOTS")
	m.mu.Lock()
	m.flight = nil
	m.mu.Unlock()
	close(f.done)
}

// parse reads the answer of the node at addr to CLUSTER SLOTS: for each range its first slot, its last, its master,
// and its replicas.
func parse(ranges []rueidis.RedisMessage, addr string) (*table, error) {
	t := &table{nodes: []string{""}}
	for _, r := range ranges {
		fields, err := r.ToArray()
		if err != nil || len(fields) < 3 {
			return nil, errors.New("cluster: unexpected reply to CLUSTER SLOTS")
		}
		first, err1 := fields[0].AsInt64()
		last, err2 := fields[1].AsInt64()
		master, err3 := fields[2].ToArray()
		if err := errors.Join(err1, err2, err3); err != nil || first < 0 || last >= Slots || len(master) < 2 {
			return nil, errors.New("cluster: unexpected reply to CLUSTER SLOTS")
		}
		node, err := address(master[0], master[1], addr)
		if err != nil {
			return nil, err
		}
		i := slices.Index(t.nodes, node)
		if i < 0 {
			i = len(t.nodes)
			t.nodes = append(t.nodes, node)
		}
		for slot := first; slot <= last; slot++ {
			t.owner[slot] = uint16(i)
		}
	}
	if len(ranges) == 0 {
		return nil, errors.New("cluster: a node without slots")
	}
	return t, nil
}

// address names a node as rueidis does: one without a host has that of the node that was asked, and one whose host is
// "?" cannot be reached.
func address(host, port rueidis.RedisMessage, asked string) (string, error) {
	h, _ := host.ToString() // null: none
	p, err := port.AsInt64()
	switch {
	case err != nil:
		return "", err
	case h == "?":
		return "", nil
	case h == "":
		h, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(h, strconv.FormatInt(p, 10)), nil
}

// Sharded reports whether the servers have sharded pub/sub: whether one carries out PUBSUB SHARDNUMSUB, as Redisson asks
// when it connects. It is asked once; without an answer the error is returned, and the next call asks again.
func (m *Map) Sharded(ctx context.Context) (bool, error) {
	if known := m.sharded.Load(); known != nil {
		return *known, nil
	}
	var sharded bool
	err := m.ask(ctx, func(_ string, r rueidis.RedisResult) error {
		err := r.Error()
		sharded = err == nil
		if refused(err) {
			return nil
		}
		return err
	}, "PUBSUB", "SHARDNUMSUB")
	if err != nil {
		return false, err
	}
	m.sharded.Store(&sharded)
	return sharded, nil
}

// refused reports whether a server does not know a command (ERR, a code that rueidis cuts off) or the user has no right
// to call it. Other errors, such as LOADING, pass.
func refused(err error) bool {
	if _, ok := rueidis.IsRedisErr(err); !ok {
		return false
	}
	code, _, _ := strings.Cut(err.Error(), " ")
	return code == "NOPERM" || code != strings.ToUpper(code)
}

// ask sends a command to one node after another, until use has taken an answer. A call that is under way then is not
// canceled: calls of the client that wait for the same dial would fail with it.
func (m *Map) ask(ctx context.Context, use func(addr string, r rueidis.RedisResult) error, command ...string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	type answer struct {
		addr   string
		result rueidis.RedisResult
	}
	nodes := m.client.Nodes()
	answers := make(chan answer, len(nodes))
	var wait time.Duration
	for addr, node := range nodes { // each time in another order
		go func(wait time.Duration) { // ends within wait and answerTime
			if loop.Sleep(wait, ctx.Done()) {
				own, over := context.WithTimeout(context.Background(), answerTime)
				defer over()
				answers <- answer{addr, node.Do(own, node.B().Arbitrary(command...).Build())}
			}
		}(wait)
		wait += stagger
	}
	err := errNoNode
	for range nodes {
		select {
		case a := <-answers:
			if err = use(a.addr, a.result); err == nil {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return err
}
