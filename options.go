package holdfast

import (
	"log/slog"
	"time"
)

// The defaults of options of lockers.
const (
	DefaultLease         = 30 * time.Second
	DefaultLocalHandover = 10 * time.Millisecond
	DefaultFenceExpiry   = 7 * 24 * time.Hour
)

// Option is a setting of a locker, for New of its kind. Those of this package are for several
// kinds; fair and multilock also have their own. A kind refuses an option that it does not
// have.
type Option interface {
	// Apply sets the option, for authors of a [Locker]. It fails if the option is of another kind.
	Apply(*Settings) error
}

// Settings are what the options of a locker have set, for authors of a [Locker].
type Settings struct {
	Lease          time.Duration
	Prefix         string
	Label          string
	LocalHandover  time.Duration
	Fencing        bool
	FenceExpiry    *time.Duration // nil: not set
	Logger         *slog.Logger
	Observer       *Observer      // nil: none
	MaxHold        time.Duration  // 0: none
	MaxWaiters     int            // 0: no bound
	MaxOutage      *time.Duration // nil: not set
	Replicas       int            // 0: none
	ReplicaTimeout time.Duration
	ShardedPubSub  *bool // nil: not set
	Own            any   // set by a kind, for its own options, which know its type; nil: it has none
}

type option func(*Settings)

func (o option) Apply(s *Settings) error { o(s); return nil }

// WithLease sets the length of a lease. Leases are renewed every third of it, and a
// crashed holder's keys are free within it. Default 30 s; at least 100 ms, in whole
// milliseconds.
func WithLease(d time.Duration) Option { return option(func(s *Settings) { s.Lease = d }) }

// WithPrefix puts a text, such as "lock:", before every key. In Redis, and for Java, the
// lock's name is the prefix and the key. Calls, leases, errors, events and the log of this
// locker name the key alone. Programs share a lock if prefix and key together are the same.
// Default none. New refuses a prefix with which no key can be locked.
func WithPrefix(prefix string) Option { return option(func(s *Settings) { s.Prefix = prefix }) }

// WithLabel sets the text by which people recognize this locker's holds: Inspect, the command
// holdfast and the errors of calls that do not get a lock show it. It is kept with the lock,
// and is gone when the lock is. Every user that may read the locks may read it, so it must
// contain no secrets. Default host name/process id; "" for none; at most 1 KiB, and up to 62
// bytes cost Redis least.
func WithLabel(label string) Option { return option(func(s *Settings) { s.Label = label }) }

// WithLocalHandover sets how long a key may go from one waiter of this locker to the next
// without a call to Redis, before other processes get it; with fair, from one to its next
// neighbour in the queue. For readers of rwlock it is how long later ones share a hold before they ask
// Redis whether a writer waits. Default 10 ms; at most a lease. 0 turns handover off: each waiter of
// fair then enters the queue by a call of its own, and each reader asks.
func WithLocalHandover(d time.Duration) Option {
	return option(func(s *Settings) { s.LocalHandover = d })
}

// WithFencing gives every new hold a number that is larger than those of all earlier holds
// of the key; see [Lease.Fence]. Default off.
//
// With rlock and fair, a lock then costs the server about half as much again. The numbers of the kinds
// on one Redis follow its clock. If that clock was ahead for a while, numbers go on from there; if the
// counter is then lost, they go back to the clock. While the clock is beyond the year 2255, Redis refuses locks.
//
// With multilock, a lock costs a second round trip, which writes the number back to a quorum.
// The true clocks of nodes must agree within a third of the longest lease. A node with another
// clock has no vote, and the log says so; if no quorum agrees, locks fail.
func WithFencing() Option { return option(func(s *Settings) { s.Fencing = true }) }

// WithFenceExpiry sets how long Redis keeps the fence counter of a key after its last
// acquire. Default 7 days; 0 keeps it forever, which is needed together with Redisson's fenced
// locks, as those would start again at 1. Needs WithFencing. With multilock, it is at least WithMaxLease.
func WithFenceExpiry(d time.Duration) Option {
	return option(func(s *Settings) { s.FenceExpiry = &d })
}

// WithLogger logs the locker's background work: lost leases, failed renewals, attempts that it
// cannot undo, and why a node of multilock has no vote; with the kinds on one Redis it also warns
// once if Redis may evict locks (one INFO at the first lock, if the user may send it). The handler
// must not block, as that would hold up renewals. Default silent.
func WithLogger(log *slog.Logger) Option { return option(func(s *Settings) { s.Logger = log }) }

// WithObserver reports what the locker does to an observer, for metrics; see [Observer]. It
// cannot delay or break a lock. Default none.
func WithObserver(o Observer) Option { return option(func(s *Settings) { s.Observer = &o }) }

// WithMaxHold caps every renewed lease of this locker, so that one whose Unlock was forgotten
// is not renewed forever: d after the acquire, the locker releases the key, the lease ends
// with ErrLost, and the log says so. A shorter [MaxHold] of a call takes precedence; a longer one
// is refused. A call that gets the lease by local handover, or shares it with other readers, has up to
// WithLocalHandover less. Default none; at least 100 ms, and longer than WithLocalHandover.
func WithMaxHold(d time.Duration) Option { return option(func(s *Settings) { s.MaxHold = d }) }

// WithMaxWaiters bounds the waiters of one key in this locker; rwlock counts readers and writers
// separately. Beyond that, Lock and TryLockFor fail immediately with ErrTooManyWaiters. Readers
// that wait for the answer to the first of them are waiters, too. Default 0: no bound.
func WithMaxWaiters(n int) Option { return option(func(s *Settings) { s.MaxWaiters = n }) }

// WithMaxOutage sets how long a wait rides out a Redis that does not answer, or too few voting
// nodes, before it fails with ErrUnavailable or ErrUnknown. The attempt that is under way then
// still has its time: less than a lease, and at most 6.25 s. 0 fails at the first attempt that
// Redis does not answer. Default one lease; multilock adds 1.02 times the longest lease, for which
// a restarted node has no vote.
func WithMaxOutage(d time.Duration) Option { return option(func(s *Settings) { s.MaxOutage = &d }) }

// WithReplicas makes a lock, a nested entry and a renewal count only when n replicas have it.
// Each waits at most timeout for them (WAIT, on a connection of its own).
// A lock or an entry that does not count is undone, and fails with ErrNotReplicated together with
// ErrUnknown; a wait tries again, as with WithMaxOutage. Where the server refuses WAIT, as it
// does for a user without that right, the call fails immediately with the cause. A renewal that
// does not count does not prolong the lease. Calls are not batched. Default none. The time is in
// whole milliseconds, and at most 2.5 s; New refuses one that is too long for the lease, and names the
// bound. For the kinds on one Redis.
//
// It makes it less likely that a failover loses a lock, but does not rule it out: Redis
// may promote a replica that lacks the write.
// https://redis.io/docs/latest/commands/wait/#consistency-and-wait
func WithReplicas(n int, timeout time.Duration) Option {
	return option(func(s *Settings) { s.Replicas, s.ReplicaTimeout = n, timeout })
}

// WithShardedPubSub chooses how the locks of a Redis Cluster notify their waiters: by its
// shard channels, or by classic ones, which Redis sends to all nodes. All programs that share
// locks, Java ones too, must choose the same. Default shard channels where the cluster has
// them, as Redisson does from 3.22 on. Where it has none (they came with Redis 7.0), true
// makes every lock fail. For the kinds on one Redis, only with a client of a Redis Cluster.
func WithShardedPubSub(on bool) Option {
	return option(func(s *Settings) { s.ShardedPubSub = &on })
}
