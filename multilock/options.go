package multilock

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/internal/hall"
	"github.com/holdfast-go/holdfast/internal/quorum"
	"github.com/holdfast-go/holdfast/scripts"
)

// The defaults of the options of New. WithMaxLease's is the lease, WithMaxOutage's
// the longest lease and a lease more.
const (
	DefaultNodeTimeout   = 50 * time.Millisecond
	DefaultLease         = 30 * time.Second
	DefaultLocalHandover = 10 * time.Millisecond
	DefaultFenceExpiry   = 7 * 24 * time.Hour
)

// Option is a setting of [New].
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

type config struct {
	hall        hall.Config
	quorum      quorum.Config
	outage      *time.Duration
	longest     *time.Duration
	timeout     *time.Duration
	fenceExpiry *time.Duration
}

// WithLease sets how long a lease lasts that is not renewed any more: renewals
// come every third of it, a crashed holder frees its keys within it. Default
// 30 s; at least 100 ms, in whole milliseconds.
func WithLease(d time.Duration) Option { return option(func(c *config) { c.hall.Lease = d }) }

// WithLocalHandover sets for how long a key may go from one waiter of this
// locker to the next without a call to Redis, before it is released for other
// processes. Default 10 ms; 0 turns it off.
func WithLocalHandover(d time.Duration) Option {
	return option(func(c *config) { c.hall.Handover = d })
}

// WithFencing gives every new hold a number that is larger than those of all
// earlier holds of the key; see [Lease.Fence]. Default off. It costs the server
// about half as much again for each lock.
func WithFencing() Option { return option(func(c *config) { c.quorum.Fencing = true }) }

// WithFenceExpiry sets for how long the fence counter of a key is kept after
// its last acquire. Default 7 days; 0 keeps it for ever, as is needed beside
// Redisson's fenced locks, which would start again at 1. Needs WithFencing.
func WithFenceExpiry(d time.Duration) Option {
	return option(func(c *config) { c.fenceExpiry = &d })
}

// WithLogger lets the locker log what it does in the background: lost leases,
// failed renewals and clean-ups; and once a warning if Redis may evict locks
// (one INFO at the first lock, if the user may send it). Its handler must not
// block: it would hold up renewals. Default silent.
func WithLogger(log *slog.Logger) Option { return option(func(c *config) { c.hall.Log = log }) }

// WithMaxWaiters bounds the waiters of one key in this locker; beyond it, Lock
// and TryLockFor fail at once with ErrQueueFull. Default 0: no bound.
func WithMaxWaiters(n int) Option { return option(func(c *config) { c.hall.MaxWaiters = n }) }

// WithMaxOutage sets for how long Lock and TryLockFor ride out that too few nodes
// vote, before they fail with ErrUnavailable (or ErrUnknown). Default the longest
// lease and one more: a node that restarted has no vote for the longest lease. 0
// fails at the first such round.
func WithMaxOutage(d time.Duration) Option { return option(func(c *config) { c.outage = &d }) }

// WithNodeTimeout sets how long one node may take to answer one call before it is
// taken to be away. It must be small against the lease; a tenth of it is the most
// that any call waits for. Default 50 ms; at least 1 ms.
func WithNodeTimeout(d time.Duration) Option { return option(func(c *config) { c.timeout = &d }) }

// WithMaxLease sets the longest lease of the deployment, the same number for all
// its clients: for so long a node that was started, emptied or promoted has no
// vote, as it may have forgotten a lease. Longer leases are refused. The nodes
// keep the number: a client with another one is refused. To change it, stop the
// clients with the old number and delete the key holdfast_node on one node after
// another, waiting each time until it votes again. Default the lease.
func WithMaxLease(d time.Duration) Option { return option(func(c *config) { c.longest = &d }) }

// WithoutRestartGuard lets a node vote right after a restart. It is for nodes that
// forget nothing (appendfsync always), for servers without a run id, and for
// deployments whose other clients know no guard: if a node forgets a lease, two
// may hold the lock.
func WithoutRestartGuard() Option {
	return option(func(c *config) { c.quorum.Unguarded = true })
}

// WithEviction lets a node vote whose maxmemory-policy is not noeviction: it may
// drop a lock that is held when it runs out of memory.
func WithEviction() Option { return option(func(c *config) { c.quorum.Evicting = true }) }

func configure(opts []Option) (*config, error) {
	c := &config{hall: hall.Config{
		Lease: DefaultLease, Handover: DefaultLocalHandover, Log: slog.New(slog.DiscardHandler),
	}}
	for _, o := range opts {
		if o == nil {
			return nil, errors.New("multilock: New: option is nil")
		}
		o.apply(c)
	}
	if err := scripts.CheckLease(c.hall.Lease); err != nil {
		return nil, fmt.Errorf("multilock: WithLease: %w", err)
	}
	c.quorum.Longest = c.hall.Lease
	if c.longest != nil {
		c.quorum.Longest = *c.longest
	}
	if err := scripts.CheckLease(c.quorum.Longest); err != nil {
		return nil, fmt.Errorf("multilock: WithMaxLease: %w", err)
	}
	c.hall.MaxOutage = c.quorum.Longest + c.hall.Lease
	if c.outage != nil {
		c.hall.MaxOutage = *c.outage
	}
	c.quorum.NodeTimeout = DefaultNodeTimeout
	if c.timeout != nil {
		c.quorum.NodeTimeout = *c.timeout
	}
	expiry := DefaultFenceExpiry
	if c.fenceExpiry != nil {
		expiry = *c.fenceExpiry
	}
	switch {
	case c.hall.Lease > c.quorum.Longest:
		return nil, fmt.Errorf("multilock: WithLease: %v is longer than WithMaxLease, %v", c.hall.Lease, c.quorum.Longest)
	case c.quorum.NodeTimeout < time.Millisecond:
		return nil, fmt.Errorf("multilock: WithNodeTimeout: %v is shorter than 1ms", c.quorum.NodeTimeout)
	case c.hall.Handover < 0:
		return nil, fmt.Errorf("multilock: WithLocalHandover: %v is negative", c.hall.Handover)
	case c.hall.Handover > c.hall.Lease:
		return nil, fmt.Errorf("multilock: WithLocalHandover: %v is longer than the lease of %v", c.hall.Handover, c.hall.Lease)
	case c.hall.MaxWaiters < 0:
		return nil, fmt.Errorf("multilock: WithMaxWaiters: %d is negative", c.hall.MaxWaiters)
	case c.hall.MaxOutage < 0:
		return nil, fmt.Errorf("multilock: WithMaxOutage: %v is negative", c.hall.MaxOutage)
	case c.hall.Log == nil:
		return nil, errors.New("multilock: WithLogger: logger is nil")
	case c.fenceExpiry != nil && !c.quorum.Fencing:
		return nil, errors.New("multilock: WithFenceExpiry needs WithFencing")
	case expiry < 0 || expiry%time.Millisecond != 0:
		return nil, fmt.Errorf("multilock: WithFenceExpiry: %v is not a whole number of milliseconds from 0", expiry)
	}
	c.quorum.FenceExpiry, c.quorum.Log = expiry, c.hall.Log
	c.quorum.NodeTimeout = min(c.quorum.NodeTimeout, c.hall.Lease/10)
	return c, nil
}

// LockOption is a setting of one call of Do, Lock, TryLock or TryLockFor. A
// nested call refuses all of them: it takes the lease as it is.
type LockOption interface{ apply(*terms) }

type lockOption func(*terms)

func (o lockOption) apply(t *terms) { o(t) }

type terms struct{ fixed, maxHold *time.Duration }

// FixedLease asks for a lease that is never renewed and is gone after d at the
// latest, whatever its holder does. At least 100 ms, in whole milliseconds.
func FixedLease(d time.Duration) LockOption { return lockOption(func(t *terms) { t.fixed = &d }) }

// MaxHold caps a renewed lease: d after it was acquired the key is released and
// the lease ends with ErrLost. Greater than zero.
func MaxHold(d time.Duration) LockOption { return lockOption(func(t *terms) { t.maxHold = &d }) }

// terms turns the options of a call into what it asks of the hall.
func (l *Locker) terms(opts []LockOption) (hall.Terms, error) {
	asked := hall.Terms{Lease: l.lease}
	if len(opts) == 0 {
		return asked, nil
	}
	var t terms
	for _, o := range opts {
		if o == nil {
			return asked, errors.New("multilock: lock option is nil")
		}
		o.apply(&t)
	}
	if t.fixed != nil && t.maxHold != nil {
		return asked, errors.New("multilock: FixedLease and MaxHold contradict each other")
	}
	if t.fixed != nil {
		if err := scripts.CheckLease(*t.fixed); err != nil {
			return asked, fmt.Errorf("multilock: FixedLease: %w", err)
		}
		if *t.fixed > l.most {
			return asked, fmt.Errorf("multilock: FixedLease: %v is longer than WithMaxLease, %v", *t.fixed, l.most)
		}
		asked.Lease, asked.Fixed = *t.fixed, true
	}
	if t.maxHold != nil {
		if *t.maxHold <= 0 {
			return asked, fmt.Errorf("multilock: MaxHold: %v is not greater than zero", *t.maxHold)
		}
		asked.MaxHold = *t.maxHold
	}
	return asked, nil
}
