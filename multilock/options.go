package multilock

import (
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/quorum"
	"github.com/holdfast-go/holdfast/scripts"
)

// The defaults of the options of New. That of WithMaxLease is the lease, that of
// WithMaxOutage the longest lease and 2 % plus one lease.
const (
	DefaultNodeTimeout   = 50 * time.Millisecond
	DefaultLease         = holdfast.DefaultLease
	DefaultLocalHandover = holdfast.DefaultLocalHandover
	DefaultFenceExpiry   = holdfast.DefaultFenceExpiry
)

// Option is a setting of [New] and [Open].
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

type config struct {
	engine  engine.Config
	quorum  quorum.Config
	longest *time.Duration
}

// WithLease sets the length of a lease. Renewals come every third of it, and a crashed
// holder's keys are free within it. Default 30 s; at least 100 ms, in whole milliseconds.
func WithLease(d time.Duration) Option { return option(func(c *config) { c.engine.Lease = d }) }

// WithPrefix puts a text before every key, such as "lock:". In Redis, and for
// Java, the lock's name is the prefix and the key. Calls, leases, errors, events and the log
// of this locker name the key alone. Programs share a lock if prefix and key together are
// the same. Default none. New refuses a prefix of which no
// key can be locked.
func WithPrefix(prefix string) Option {
	return option(func(c *config) { c.engine.Prefix = prefix })
}

// WithLabel sets the text by which people recognize this locker's holds: Inspect, the command
// holdfast and the errors of calls that do not get a lock show it. It is kept with the lock,
// and is gone when the lock is. Every user that may read the locks may read it, so it must
// have no secrets. Default host name/process id; "" for none; at most 1 KiB, and up to 62 bytes cost
// Redis least.
func WithLabel(label string) Option {
	return option(func(c *config) { c.engine.Label = label })
}

// WithLocalHandover sets how long a key may go from one waiter of this locker to the next
// without a call to Redis, before other processes get it. Default 10 ms; 0 turns hand-over
// off.
func WithLocalHandover(d time.Duration) Option {
	return option(func(c *config) { c.engine.Handover = d })
}

// WithFencing gives every new hold a number that is larger than those of all earlier holds
// of the key; see [Lease.Fence]. The true clocks of nodes must agree within a third of the
// longest lease. A node with another clock has no vote, and the log says so; if no quorum
// agrees, locks fail. Default off. It costs each lock a second round trip, which writes the
// number back to a quorum.
func WithFencing() Option { return option(func(c *config) { c.quorum.Fencing = true }) }

// WithFenceExpiry sets how long Redis keeps the fence counter of a key after its last
// acquire. Default 7 days; 0 keeps it for ever, which is needed beside Redisson's fenced
// locks, as those would start again at 1. Needs WithFencing.
func WithFenceExpiry(d time.Duration) Option {
	return option(func(c *config) { c.engine.FenceExpiry = &d })
}

// WithLogger logs the locker's background work: lost leases, failed renewals and clean-ups,
// and why a node has no vote. New and Open warn of options of the clients that hurt locks. The
// handler must not block, as it would hold up renewals. Default silent.
func WithLogger(log *slog.Logger) Option { return option(func(c *config) { c.engine.Log = log }) }

// WithObserver tells an observer what the locker does, for metrics; see [holdfast.Observer].
// It cannot delay or break a lock. Default none.
func WithObserver(o holdfast.Observer) Option {
	return option(func(c *config) { c.engine.Observer = o })
}

// WithMaxHold caps every renewed lease of this locker, so that one whose Unlock was forgotten
// is not renewed for ever: d after the acquire, the locker releases the key, the lease ends
// with ErrLost, and the log says so. A shorter [MaxHold] of a call goes before; a longer one
// is refused. A waiter that gets the lease by local hand-over has up to WithLocalHandover
// less. Default none; at least 100 ms, and longer than WithLocalHandover.
func WithMaxHold(d time.Duration) Option { return option(func(c *config) { c.engine.MaxHold = d }) }

// WithMaxWaiters bounds the waiters of one key in this locker. Beyond that, Lock and
// TryLockFor fail at once with ErrQueueFull. Default 0: no bound.
func WithMaxWaiters(n int) Option { return option(func(c *config) { c.engine.MaxWaiters = n }) }

// WithMaxOutage sets how long a wait goes on while too few nodes vote, before it fails with
// ErrUnavailable or ErrUnknown. Default one lease more than the longest lease and 2 %, for
// which a restarted node has no vote. 0 fails at the first such round.
func WithMaxOutage(d time.Duration) Option {
	return option(func(c *config) { c.engine.MaxOutage = &d })
}

// WithNodeTimeout sets how long one node may take to answer one call. An unanswered call
// ends after three quarters to all of it. It should be small against the lease; no call
// takes longer than a tenth of the lease. Default 50 ms; at least 1 ms.
func WithNodeTimeout(d time.Duration) Option {
	return option(func(c *config) { c.quorum.NodeTimeout = d })
}

// WithMaxLease sets the longest lease of the deployment, the same for all its clients. A
// node that was started, emptied or promoted has no vote for that long, as it may have
// forgotten a lease. The locker refuses longer leases, and the nodes, which remember the
// setting, refuse a client with another one. To change it, stop all clients, wait for the
// old longest lease, delete the key holdfast_node on all nodes, and call [Locker.Bootstrap]
// with [NothingHeld] and the new setting. Default the lease.
func WithMaxLease(d time.Duration) Option { return option(func(c *config) { c.longest = &d }) }

// WithoutRestartGuard lets a node vote right after a restart: if it has forgotten a lease,
// two may hold the lock. It is for nodes that forget nothing (appendfsync always), for
// servers without a run id or before Redis 7.0, and for deployments with other clients that
// know no guard. Two addresses that lead to one server are then noticed within half a lease,
// or by the next lock; with the guard, at once.
func WithoutRestartGuard() Option {
	return option(func(c *config) { c.quorum.Unguarded = true })
}

// WithEviction lets a node vote with a maxmemory-policy other than noeviction: it may drop
// a lock that is held when it runs out of memory. Without this option, a policy that
// changes while lockers run is noticed within a lease, or by the next lock.
func WithEviction() Option { return option(func(c *config) { c.quorum.Evicting = true }) }

// WithClockFaults keeps exclusion while the clocks of k nodes jump, at any moment and by
// any amount. Each lease and each renewal needs k votes more than a quorum, so that a
// quorum is left when k nodes have lost it. Then k nodes fewer may be missing: with k = 1,
// one of five and none of three. Default 0: a lease survives a clock fault once every
// working node has it (see the package documentation); k may be as large as the minority.
// The option protects the leases of this locker only: give it to all lockers.
func WithClockFaults(k int) Option {
	return option(func(c *config) { c.quorum.ClockFaults = k })
}

// configure checks the settings of a locker that the function of this name makes.
func configure(function string, nodes int, opts []Option) (*config, error) {
	if nodes < 1 || nodes > 15 {
		return nil, errs.Invalid("multilock: %s: %d nodes, 1 to 15 are allowed", function, nodes)
	}
	c := &config{engine: engine.NewConfig("multilock"), quorum: quorum.Config{NodeTimeout: DefaultNodeTimeout}}
	for _, o := range opts {
		if o == nil {
			return nil, errs.Invalid("multilock: %s: option is nil", function)
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
		return nil, errs.Invalid("multilock: WithMaxLease: %w", err)
	}
	if c.engine.Lease > c.quorum.Longest {
		return nil, errs.Invalid("multilock: WithLease: %v is longer than WithMaxLease, %v", c.engine.Lease, c.quorum.Longest)
	}
	if k, most := c.quorum.ClockFaults, (nodes-1)/2; k < 0 || k > most {
		return nil, errs.Invalid("multilock: WithClockFaults: %d of %d nodes, 0 to %d are allowed", k, nodes, most)
	}
	if c.quorum.NodeTimeout < time.Millisecond {
		return nil, errs.Invalid("multilock: WithNodeTimeout: %v is shorter than 1ms", c.quorum.NodeTimeout)
	}
	c.quorum.FenceExpiry, c.quorum.Log, c.quorum.Label = *c.engine.FenceExpiry, c.engine.Log, c.engine.Label
	c.engine.Longest = c.quorum.Longest
	c.quorum.NodeTimeout = min(c.quorum.NodeTimeout, c.engine.Lease/10)
	return c, nil
}

// BootstrapOption is a setting of one call of [Locker.Bootstrap].
type BootstrapOption interface{ apply(*bootstrap) }

type bootstrap struct{ nothingHeld bool }

type bootstrapOption func(*bootstrap)

func (o bootstrapOption) apply(b *bootstrap) { o(b) }

// NothingHeld states that no lease of these nodes is held or will be taken before Bootstrap
// returns: the nodes are new, or all programs have been stopped for the longest lease. Then
// no node can have forgotten a lease, and all nodes vote at once, whichever client has
// marked them. It is for a script that a person runs to set up a deployment, never for the
// start of a service: nodes without persistence look new after a restart, even one after
// another, and the statement would give away what others hold.
//
// Bootstrap does nothing if all nodes vote, and fails if only some do, as those may be in
// use.
func NothingHeld() BootstrapOption {
	return bootstrapOption(func(b *bootstrap) { b.nothingHeld = true })
}
