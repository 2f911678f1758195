package multilock

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/quorum"
	"github.com/holdfast-go/holdfast/scripts"
)

// The defaults of the options of New. WithMaxLease's is the lease, WithMaxOutage's
// a little more than the longest lease and one more.
const (
	DefaultNodeTimeout   = 50 * time.Millisecond
	DefaultLease         = holdfast.DefaultLease
	DefaultLocalHandover = holdfast.DefaultLocalHandover
	DefaultFenceExpiry   = holdfast.DefaultFenceExpiry
)

// Option is a setting of [New].
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

type config struct {
	engine  engine.Config
	quorum  quorum.Config
	longest *time.Duration
	timeout *time.Duration
}

// WithLease sets how long a lease lasts that is not renewed any more: renewals
// come every third of it, a crashed holder frees its keys within it. Default
// 30 s; at least 100 ms, in whole milliseconds.
func WithLease(d time.Duration) Option { return option(func(c *config) { c.engine.Lease = d }) }

// WithLocalHandover sets for how long a key may go from one waiter of this
// locker to the next without a call to Redis, before it is released for other
// processes. Default 10 ms; 0 turns it off.
func WithLocalHandover(d time.Duration) Option {
	return option(func(c *config) { c.engine.Handover = d })
}

// WithFencing gives every new hold a number that is larger than those of all
// earlier holds of the key; see [Lease.Fence]. The true clocks of nodes must agree within
// a third of the longest lease. One that does not counts for no fence, which is logged;
// where no quorum agrees, nobody gets the lock. Default off. It costs each lock a second
// round trip, in which the number is written back to a quorum.
func WithFencing() Option { return option(func(c *config) { c.quorum.Fencing = true }) }

// WithFenceExpiry sets for how long the fence counter of a key is kept after
// its last acquire. Default 7 days; 0 keeps it for ever, as is needed beside
// Redisson's fenced locks, which would start again at 1. Needs WithFencing.
func WithFenceExpiry(d time.Duration) Option {
	return option(func(c *config) { c.engine.FenceExpiry = &d })
}

// WithLogger lets the locker log what it does in the background: lost leases,
// failed renewals and clean-ups; and why a node has no vote. Its handler must not
// block: it would hold up renewals. Default silent.
func WithLogger(log *slog.Logger) Option { return option(func(c *config) { c.engine.Log = log }) }

// WithMaxWaiters bounds the waiters of one key in this locker; beyond it, Lock
// and TryLockFor fail at once with ErrQueueFull. Default 0: no bound.
func WithMaxWaiters(n int) Option { return option(func(c *config) { c.engine.MaxWaiters = n }) }

// WithMaxOutage sets for how long a wait goes on while too few nodes vote, before it
// fails with ErrUnavailable (or ErrUnknown). Default one lease more than the longest
// lease and 2 %, for which a node that restarted has no vote. 0 fails at the first such
// round.
func WithMaxOutage(d time.Duration) Option {
	return option(func(c *config) { c.engine.MaxOutage = &d })
}

// WithNodeTimeout sets how long one node may take at most to answer one call: a
// call that gets no answer has had at least three quarters of it. It must be small
// against the lease; a tenth of it is the most that any call waits for. Default
// 50 ms; at least 1 ms.
func WithNodeTimeout(d time.Duration) Option { return option(func(c *config) { c.timeout = &d }) }

// WithMaxLease sets the longest lease of the deployment, the same number for all
// its clients: for so long a node that was started, emptied or promoted has no
// vote, as it may have forgotten a lease. Longer leases are refused. The nodes
// keep the number: a client with another one is refused. To change it, stop all
// clients, wait for as long as the old number, delete the key holdfast_node on all
// nodes, and call [Locker.Bootstrap] with [NothingHeld] and the new one. Default the
// lease.
func WithMaxLease(d time.Duration) Option { return option(func(c *config) { c.longest = &d }) }

// WithoutRestartGuard lets a node vote right after a restart. It is for nodes that
// forget nothing (appendfsync always), for servers without a run id, and for
// deployments whose other clients know no guard: if a node forgets a lease, two
// may hold the lock. That an address leads to the server of another client is noticed
// within half a lease then, or by the next lock, and with a guard at once.
func WithoutRestartGuard() Option {
	return option(func(c *config) { c.quorum.Unguarded = true })
}

// WithEviction lets a node vote whose maxmemory-policy is not noeviction: it may
// drop a lock that is held when it runs out of memory. Without it a policy that is set
// while lockers run is noticed within a lease, or by the next lock.
func WithEviction() Option { return option(func(c *config) { c.quorum.Evicting = true }) }

// WithClockFaults keeps exclusion while the clocks of k nodes jump, at any moment and
// by any amount: a lease is handed out, and a renewal trusted, only with k votes more
// than a quorum, so that a quorum is left when k nodes have lost it. Then k nodes fewer
// may be missing: with k = 1, one of five and none of three. Default 0, with which
// a lease survives a clock fault once every working node has it (see the package's
// page); k may be as large as the minority. It protects the leases of this locker only:
// give it to all lockers.
func WithClockFaults(k int) Option {
	return option(func(c *config) { c.quorum.ClockFaults = k })
}

func configure(opts []Option) (*config, error) {
	c := &config{engine: engine.NewConfig("multilock")}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("multilock: New: option is nil")
		}
		o.apply(c)
	}
	c.quorum.Lease, c.quorum.Longest = c.engine.Lease, c.engine.Lease
	if c.longest != nil {
		c.quorum.Longest = *c.longest
	}
	if c.engine.MaxOutage == nil {
		outage := c.quorum.Longest + c.quorum.Longest/50 + c.engine.Lease // the clocks of nodes may run slow
		c.engine.MaxOutage = &outage
	}
	c.engine.Fencing = c.quorum.Fencing
	if err := c.engine.Check(); err != nil {
		return nil, err
	}
	if err := scripts.CheckLease(c.quorum.Longest); err != nil {
		return nil, fmt.Errorf("multilock: WithMaxLease: %w", err)
	}
	if c.engine.Lease > c.quorum.Longest {
		return nil, fmt.Errorf("multilock: WithLease: %v is longer than WithMaxLease, %v", c.engine.Lease, c.quorum.Longest)
	}
	timeout := DefaultNodeTimeout
	if c.timeout != nil {
		timeout = *c.timeout
	}
	if timeout < time.Millisecond {
		return nil, fmt.Errorf("multilock: WithNodeTimeout: %v is shorter than 1ms", timeout)
	}
	c.quorum.FenceExpiry, c.quorum.Log = *c.engine.FenceExpiry, c.engine.Log
	c.engine.Longest = c.quorum.Longest
	c.quorum.NodeTimeout = min(timeout, c.engine.Lease/10)
	return c, nil
}

// BootstrapOption is a setting of one call of [Locker.Bootstrap].
type BootstrapOption interface{ apply(*bootstrap) }

type bootstrap struct{ nothingHeld bool }

type bootstrapOption func(*bootstrap)

func (o bootstrapOption) apply(b *bootstrap) { o(b) }

// NothingHeld states that nobody holds a lease of these nodes, nor takes one before
// Bootstrap returns: as on new nodes, or with all programs stopped for as long as the
// longest lease. Then there is nothing that a node may have forgotten, and all nodes
// vote at once, whoever has marked them. It is for a script that a person runs where a
// deployment is set up, never for the start of a service: after nodes without
// persistence have been restarted, one after another even, they look as if they were
// new, and the statement would give away what others hold.
//
// Bootstrap does nothing where all nodes vote, and fails where only some do, as those
// may be in use.
func NothingHeld() BootstrapOption {
	return bootstrapOption(func(b *bootstrap) { b.nothingHeld = true })
}
