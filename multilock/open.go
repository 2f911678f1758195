package multilock

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/redact"
)

// Open returns a locker on the independent masters at nodes. It is like [New], but makes
// the clients itself, and Close closes them. rueidis.NewClient fails for a node that does
// not answer. Open treats such a node like any other that is unavailable: locks work while
// a quorum answers, and later calls connect to the node as soon as it does. After a restart
// it first has no vote, as [WithMaxLease] says.
//
// Open connects to all nodes in parallel. It waits for each at most Dialer.Timeout, and as long
// again for the answer to the first command. The log (see [holdfast.WithLogger]) names those that
// could not be reached, and why. Open does not fail then, even if no node answers, or one refuses
// the password: locks fail and say so.
//
// InitAddress must be the address of one server: Open refuses a URL, a Sentinel set,
// EnableRedirect and ReplicaAddress, as rueidis cannot make such a client before it
// connects. Open sets DisableCache and ForceSingleClient. What the caller leaves at zero, it
// sets to values that suit locks: the two buffers to 32 KiB, RingScaleEachConn to 8, and
// Dialer.Timeout and ConnWriteTimeout to a quarter of the lease, but no more than 1 s or, if
// that is longer, [WithNodeTimeout].
//
// Open fails on too few or too many nodes, and on an option out of range; the error names
// the option, or the index of the node. It does not notice a node of a Redis Cluster, which
// New refuses; locks fail there with CROSSSLOT.
func Open(nodes []rueidis.ClientOption, opts ...holdfast.Option) (*Locker, error) {
	c, q, err := configure("Open", len(nodes), opts)
	if err != nil {
		return nil, err
	}
	for i, o := range nodes {
		switch {
		case len(o.InitAddress) != 1 || o.InitAddress[0] == "":
			return nil, errs.Invalid("multilock: Open: node %d needs an InitAddress of one address", i)
		case strings.Contains(o.InitAddress[0], "://"), strings.LastIndex(o.InitAddress[0], "@") > 0:
			return nil, errs.Invalid("multilock: Open: node %d needs host and port as its InitAddress; rueidis.ParseURL reads a URL", i)
		case o.Sentinel.MasterSet != "" || o.Standalone.EnableRedirect || len(o.Standalone.ReplicaAddress) > 0:
			return nil, errs.Invalid("multilock: Open: node %d is not a single server; make its client, and use New", i)
		}
	}

	timeout := max(q.NodeTimeout, min(c.Lease/4, time.Second))
	clients, failed := make([]rueidis.Client, len(nodes)), make([]error, len(nodes))
	var all sync.WaitGroup
	for i, o := range nodes {
		o.Dialer.Timeout = cmp.Or(o.Dialer.Timeout, timeout)
		o.ConnWriteTimeout = cmp.Or(o.ConnWriteTimeout, timeout)
		o.ReadBufferEachConn = cmp.Or(o.ReadBufferEachConn, 32<<10)
		o.WriteBufferEachConn = cmp.Or(o.WriteBufferEachConn, 32<<10)
		o.RingScaleEachConn = cmp.Or(o.RingScaleEachConn, 8)
		o.DisableCache = true
		// rueidis then returns a client, which dials again at each call, also with the
		// error of a failed dial.
		o.ForceSingleClient = true
		all.Go(func() { clients[i], failed[i] = rueidis.NewClient(o) })
	}
	all.Wait()
	for i, client := range clients {
		if client == nil {
			closeAll(clients)
			return nil, errs.Invalid("multilock: Open: node %d: %w", i, redact.Error(failed[i]))
		}
	}
	for i, err := range failed {
		if err != nil {
			c.Logger.Warn("holdfast: multilock: a node cannot be reached yet", "node", nodes[i].InitAddress[0], "error", redact.Error(err))
		}
	}
	l := newLocker(clients, c, q)
	l.opened = clients
	return l, nil
}

// closeAll closes clients in parallel, as each may take a second. Some may be nil.
func closeAll(clients []rueidis.Client) {
	var all sync.WaitGroup
	for _, client := range clients {
		if client != nil {
			all.Go(client.Close)
		}
	}
	all.Wait()
}
