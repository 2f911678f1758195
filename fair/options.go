package fair

import (
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
)

// The defaults of the options of New. WithMaxOutage's is one lease.
const (
	DefaultLease         = holdfast.DefaultLease
	DefaultLocalHandover = holdfast.DefaultLocalHandover
	DefaultFenceExpiry   = holdfast.DefaultFenceExpiry
	DefaultStale         = 5 * time.Second
	DefaultFirstLease    = 5 * time.Second
)

// Option is a setting of [New].
type Option interface{ apply(*config) }

type option func(*config)

func (o option) apply(c *config) { o(c) }

type config struct {
	engine.Config
	firstLease *time.Duration
}

// settings returns the settings of the scripts.
func (c *config) settings() scripts.FairSettings {
	s := scripts.FairSettings{Client: c.Client, Stale: c.Stale, FirstLease: *c.firstLease}
	if c.Fencing {
		s.Fencing = scripts.Fencing{Reserve: 1, Expiry: *c.FenceExpiry}
	}
	if c.Handover > 0 {
		s.Members = mostMembers
		s.Fencing.Reserve *= min(max(1, c.Handover.Microseconds()), 1_000_000)
	}
	return s
}

// mostMembers is how many waiters of one locker may follow the first of a run:
// enough for a tenure of short sections, few enough to be named in a message.
const mostMembers = 64

// WithLease sets the length of a lease. Renewals come every third of it, and a crashed
// holder's keys are free within it. Default 30 s; at least 100 ms, in whole milliseconds.
func WithLease(d time.Duration) Option { return option(func(c *config) { c.Lease = d }) }

// WithPrefix puts a text before every key, such as "lock:". In Redis, and for
// Java, the lock's name is the prefix and the key. Calls, leases, errors, events and the log
// of this locker name the key alone. Programs share a lock if prefix and key together are
// the same. Default none. New refuses a prefix of which no
// key can be locked.
func WithPrefix(prefix string) Option {
	return option(func(c *config) { c.Prefix = prefix })
}

// WithLabel sets the text by which people recognize this locker's holds: Inspect, the command
// holdfast and the errors of calls that do not get a lock show it. It is kept with the lock,
// and is gone when the lock is. Every user that may read the locks may read it, so it must
// have no secrets. Default host name/process id; "" for none; at most 1 KiB, and up to 62 bytes cost
// Redis least.
func WithLabel(label string) Option {
	return option(func(c *config) { c.Label = label })
}

// WithLocalHandover sets how long a key may go from one waiter of this locker to its next
// neighbour in the queue without a call to Redis. Default 10 ms; 0 turns hand-over off, and
// each waiter then enters by a call of its own.
func WithLocalHandover(d time.Duration) Option {
	return option(func(c *config) { c.Handover = d })
}

// WithFencing gives every new hold a number that is larger than those of all earlier holds
// of the key; see [Lease.Fence]. Default off. A lock then costs the server about half as
// much again. Numbers follow Redis' clock. If that clock was ahead for a while, numbers go
// on from there; if the counter is then lost, they go back. While the clock is beyond the
// year 2255, Redis refuses locks.
func WithFencing() Option { return option(func(c *config) { c.Fencing = true }) }

// WithFenceExpiry sets how long Redis keeps the fence counter of a key after its last
// acquire. Default 7 days; 0 keeps it for ever, which is needed beside Redisson's fenced
// locks, as those would start again at 1. Needs WithFencing.
func WithFenceExpiry(d time.Duration) Option {
	return option(func(c *config) { c.FenceExpiry = &d })
}

// WithStale sets how long this locker may be silent before its waiters count as dead and
// lose their places. It sends a heartbeat five times in that time, at least every 5 s.
// Default 5 s; from 100 ms to 30 years, in whole milliseconds.
func WithStale(d time.Duration) Option { return option(func(c *config) { c.Stale = d }) }

// WithFirstLease sets the length of the lease that comes with a grant. The waiter then
// renews it to the lease that it asked for; a waiter that has died unnoticed holds up those
// behind it for that long. Default 5 s, or WithStale if that is longer; at least WithStale,
// in whole milliseconds.
func WithFirstLease(d time.Duration) Option {
	return option(func(c *config) { c.firstLease = &d })
}

// WithConfirmedGrants has a waiter confirm a grant that comes as a message by one more call
// before it has the lock. It is for a Redis in which others can read the queues and publish to
// the channels of locks: without it, they can forge grants. With it, a forged message gives
// nobody the lock, but its waiter goes to the end of the queue. A hand-over to another process
// then takes two round trips, and starts no local hand-overs. Default off.
func WithConfirmedGrants() Option { return option(func(c *config) { c.ConfirmGrants = true }) }

// WithLogger logs the locker's background work: lost leases, failed renewals and clean-ups,
// and once a warning if Redis may evict locks (one INFO at the first lock, if the user may
// send it). New warns of options of the client that hurt locks. The handler must not block,
// as it would hold up renewals. Default silent.
func WithLogger(log *slog.Logger) Option { return option(func(c *config) { c.Log = log }) }

// WithObserver tells an observer what the locker does, for metrics; see [holdfast.Observer].
// It cannot delay or break a lock. Default none.
func WithObserver(o holdfast.Observer) Option {
	return option(func(c *config) { c.Observer = o })
}

// WithMaxHold caps every renewed lease of this locker, so that one whose Unlock was forgotten
// is not renewed for ever: d after the acquire, the locker releases the key, the lease ends
// with ErrLost, and the log says so. A shorter [MaxHold] of a call goes before; a longer one
// is refused. A waiter that gets the lease by local hand-over has up to WithLocalHandover
// less. Default none; at least 100 ms, and longer than WithLocalHandover.
func WithMaxHold(d time.Duration) Option { return option(func(c *config) { c.MaxHold = d }) }

// WithMaxWaiters bounds the waiters of one key in this locker. Beyond that, Lock and
// TryLockFor fail at once with ErrQueueFull. Default 0: no bound.
func WithMaxWaiters(n int) Option { return option(func(c *config) { c.MaxWaiters = n }) }

// WithMaxOutage sets how long a wait rides out a Redis that does not answer, before it
// fails with ErrUnavailable or ErrUnknown. The attempt then under way may still take a
// third of a lease and a quarter of that, at most 6.25 s. Default one lease; 0 fails at the first attempt that
// Redis does not answer.
func WithMaxOutage(d time.Duration) Option { return option(func(c *config) { c.MaxOutage = &d }) }

// WithReplicas makes a lock, a nested entry and a renewal count only when so many replicas
// have it, for which each waits at most the given time (WAIT, on a connection of its own).
// A lock or an entry that does not count is undone, and fails with ErrNotReplicated beside
// ErrUnknown; a wait tries again, as with WithMaxOutage. Where the server refuses WAIT, as it
// does to a user without that right, it fails at once with the cause. A renewal that does not
// count does not prolong the lease. Each costs a round trip more, and there are no batches of calls.
// Default none. The time is in whole milliseconds, at most a sixth of the lease and 2.5 s.
//
// It makes it less likely that a fail-over loses a lock, and does not exclude it: Redis may
// promote a replica that lacks the write.
// https://redis.io/docs/latest/commands/wait/#consistency-and-wait
func WithReplicas(n int, timeout time.Duration) Option {
	return option(func(c *config) { c.Replicas, c.ReplicaTimeout = n, timeout })
}

// WithShardedPubSub chooses how the locks of a Redis Cluster notify their waiters: by its
// shard channels, or by classic ones, which Redis sends to all nodes. All programs that share
// locks, Java ones too, have to choose alike. Default shard channels where the cluster has
// them, as Redisson does from 3.22 on. Where it has none (they came with Redis 7.0), true
// makes every lock fail. Only for a client of a Redis Cluster.
func WithShardedPubSub(on bool) Option {
	return option(func(c *config) { c.ShardedPubSub = &on })
}

func configure(opts []Option) (*config, error) {
	c := &config{Config: engine.NewConfig("fair")}
	c.Client, c.Stale = uuid.NewString(), DefaultStale
	for _, o := range opts {
		if o == nil {
			return nil, errs.Invalid("fair: New: option is nil")
		}
		o.apply(c)
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if err := scripts.CheckStale(c.Stale); err != nil {
		return nil, errs.Invalid("fair: WithStale: %w", err)
	}
	if c.firstLease == nil {
		first := max(DefaultFirstLease, c.Stale)
		c.firstLease = &first
	}
	if err := scripts.CheckLease(*c.firstLease); err != nil {
		return nil, errs.Invalid("fair: WithFirstLease: %w", err)
	}
	if *c.firstLease < c.Stale {
		return nil, errs.Invalid("fair: WithFirstLease: %v is shorter than WithStale's %v", *c.firstLease, c.Stale)
	}
	c.FirstLease = *c.firstLease
	return c, nil
}

// OnPlace is [holdfast.OnPlace].
func OnPlace(f func(place int)) LockOption { return holdfast.OnPlace(f) }
