package engine

import (
	"context"
	"hash/maphash"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Backend is what a lock kind knows and the engine does not: where a hold comes from.
// All methods may be called concurrently. Errors are judged by
// [scripts.OutcomeOf]; a call whose reply is lost may be repeated, except
// Acquire, which the engine never repeats for the same owner. A lock kind is [Plain] or
// [Fair].
type Backend interface {
	// Acquire makes owner the holder of key if key is free. numbers is how many
	// fences the hold should reserve, for lock kinds that mint them.
	Acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error)
	// Recount brings the owner's number of entries to the given one.
	Recount(ctx context.Context, key, owner string, entries int) (ours bool, err error)
	// Renew pushes out the expiry of many holds; one answer for each.
	Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []scripts.Answer) error
}

// Plain is the backend of a lock kind whose processes race for a key that is released.
type Plain interface {
	Backend
	// Release ends the owner's hold, whatever its count. lastFence is the last
	// number used if reserved ones are left over, else 0.
	Release(ctx context.Context, key, owner string, lastFence int64) (scripts.Released, error)
	// CleanUp undoes an acquire of unknown outcome, also one that arrives later.
	CleanUp(ctx context.Context, key, owner string) (scripts.Released, error)
	// Subscribe hears of the releases of key.
	Subscribe(key string) Subscription
	// Lost is told of a hold that has ended without a release, and may stand in
	// Redis yet.
	Lost(key, owner string)
}

// Subscription is a [pubsub.Subscription], or several of them as one.
type Subscription interface {
	State() pubsub.State
	Wake() <-chan struct{}
	Close()
}

// Config is what a lock kind tells its engine; checked by the lock kind.
type Config struct {
	Kind       string        // the lock kind's name, which begins the errors of New
	Server     func() string // names the server in errors; nil: those of the backend do
	Lease      time.Duration // of renewed holds
	Longest    time.Duration // of the leases of a deployment; 0: no limit
	Handover   time.Duration // longest tenure of local hand-over; 0 turns it off
	MaxWaiters int           // per key; 0: no limit
	MaxOutage  time.Duration // how long a wait rides out an absent Redis
	Log        *slog.Logger

	// Scatter is how long a head lets pass after a message, or a split vote, before
	// it tries again: where votes can be split, those who try at once get nothing.
	// tries is how many attempts have failed of late. nil: not at all.
	Scatter func(tries int) time.Duration

	Fencing bool // a hold without a fence is not enough

	// EvictionPolicy asks Redis for its maxmemory-policy, once; nil: it is not asked.
	EvictionPolicy func(context.Context) (string, error)

	// Of fair locks only:
	Client string        // the client's id
	Stale  time.Duration // how long a client that is not heard of keeps its places
}

// Engine is one client's side of all its keys. Safe for concurrent use.
type Engine struct {
	Config                   // immutable after New
	backend    Backend       // immutable after New
	plain      Plain         // backend; nil on a fair lock; immutable after New
	fair       Fair          // backend; nil on a plain lock; immutable after New
	heartbeats heartbeats    // of a fair lock
	client     string        // the client's uuid; immutable after New
	owners     atomic.Uint64 // number of the last owner
	seed       maphash.Seed  // immutable after New
	epoch      time.Time     // immutable after New
	shards     [64]shard     // by hash of the key
	watchdog   *watchdog.Watchdog[*hold]
	calls      calls
	undoing    undoing
	brief      calls              // of a fair lock: enters and looks
	stop       context.CancelFunc // ends the base of both
	work       sync.WaitGroup     // calls of users, heads and clean-ups under way
	trips      average            // time of an acquire's round trip
	answered   atomic.Int64       // when Redis last answered, since epoch; 0: it failed to
	begun      sync.Once          // the first lock was asked for
	closing    sync.Once
	shut       bool // Go does nothing any more; guarded by the first shard's mu
}

// shard guards a part of the keys: the map, and all that hangs on its queues.
type shard struct {
	mu     sync.Mutex
	queues map[string]*queue
	closed bool
}

// New returns the engine of a plain lock, with a client identity of its own. It
// makes no call to Redis. Close it when it is no longer used.
func New(backend Plain, c Config) *Engine {
	h := build(backend, c)
	h.plain, h.client = backend, uuid.NewString()
	return h
}

// NewFair returns the engine of a fair lock, as New does. The client's id is part
// of what its backend says to Redis, and so is given.
func NewFair(backend Fair, c Config) *Engine {
	h := build(backend, c)
	h.fair, h.client = backend, c.Client
	h.heartbeats.poke = make(chan struct{}, 1)
	h.brief.base = h.calls.base
	h.brief.timeout = min(max(c.Stale/3, 100*time.Millisecond), h.calls.timeout)
	return h
}

func build(backend Backend, c Config) *Engine {
	h := &Engine{Config: c, backend: backend, seed: maphash.MakeSeed(), epoch: time.Now()}
	for i := range h.shards {
		h.shards[i].queues = make(map[string]*queue)
	}
	h.calls.base, h.stop = context.WithCancel(context.Background())
	h.calls.timeout = callTimeout(c.Lease)
	h.watchdog = watchdog.New(watchdog.Config[*hold]{Lease: c.Lease, Renew: h.renew, Ended: h.holdEnded})
	return h
}

// callTimeout is how long one call to Redis may take (and a quarter more): a
// third of a lease, as a hold that was so long in coming is worth little, at most
// 5 s; but 100 ms where the lease allows that.
func callTimeout(lease time.Duration) time.Duration {
	return min(max(lease/3, min(100*time.Millisecond, lease*3/4)), 5*time.Second)
}

// now is the time since the engine was made, on the monotonic clock.
func (h *Engine) now() time.Duration { return time.Since(h.epoch) }

func (h *Engine) shardOf(key string) *shard {
	return &h.shards[maphash.String(h.seed, key)%uint64(len(h.shards))]
}

// newOwner mints an identity that is never used again. The leading zero tells
// our owners from Redisson's.
func (h *Engine) newOwner() string {
	b := make([]byte, 0, 64)
	b = append(append(b, h.client...), ":0"...)
	return string(strconv.AppendUint(b, h.owners.Add(1), 10))
}

// known turns the error of a call to Redis into that of its caller: what can be
// known of the outcome, joined with the cause; a refusal stays as it is.
func known(err error) error {
	switch scripts.OutcomeOf(err) {
	case scripts.Unavailable:
		return failed(holdfast.ErrUnavailable, err)
	case scripts.Unknown:
		return failed(holdfast.ErrUnknown, err)
	}
	return err
}

// Go runs f in the background, with a bounded context, as work that Close waits
// for; false, and nothing, when Close has released what was held.
func (h *Engine) Go(f func(context.Context)) bool {
	s := &h.shards[0]
	s.mu.Lock()
	defer s.mu.Unlock()
	if !h.shut {
		h.background(func() { f(h.calls.context()) })
	}
	return !h.shut
}

// background runs f as work that Close waits for. It is called from such work,
// from the watchdog, or under the mu of a shard while Close has not got so far.
func (h *Engine) background(f func()) {
	h.work.Add(1)
	go func() {
		defer h.work.Done()
		f()
	}()
}
