package engine

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/watchdog"
)

// Config is what a lock kind tells its engine: [NewConfig], changed by its options, checked
// by [Config.Check].
type Config struct {
	Kind       string        // the lock kind's name, which begins the errors of New
	Client     string        // the locker's id, which begins its owners; "": a new one
	Lease      time.Duration // of renewed holds
	Longest    time.Duration // of the leases of a deployment; 0: no limit
	Handover   time.Duration // longest tenure of local hand-over; 0 turns it off
	MaxWaiters int           // per key; 0: no limit
	Fencing    bool          // a hold without a fence is not enough
	Log        *slog.Logger

	MaxOutage   *time.Duration // how long a wait rides out an absent Redis; nil: one lease, set by Check
	FenceExpiry *time.Duration // of fence counters; nil: as usual, set by Check

	// Calls is shared with a backend that makes calls of its own; nil: the engine's alone.
	Calls *Calls

	// EvictionPolicy asks Redis for its maxmemory-policy, once; nil: it is not asked.
	EvictionPolicy func(context.Context) (string, error)

	// RetryDelay is for backends whose votes can be split: how long racing waiters let
	// pass after a message, or a split vote, before they try again. If all of them tried
	// at once, none would succeed. tries is how many attempts failed lately. nil: no delay.
	RetryDelay func(tries int) time.Duration

	// Stale is how long queued waiters keep their places without a heartbeat.
	Stale time.Duration
}

// Engine is one locker's side of all its keys. Safe for concurrent use.
type Engine struct {
	Config                // immutable after New
	backend  Backend      // immutable after New
	waits    discipline   // how waiters get a key; immutable after New
	calls    *Calls       // immutable after New
	seed     maphash.Seed // immutable after New
	shards   [64]shard    // by hash of the key
	owners   atomic.Uint64
	watchdog *watchdog.Watchdog[*hold]
	undoing  undoing
	trips    average // time of an acquire's round trip
	begun    sync.Once
	closing  sync.Once
	closed   chan struct{} // closed by Close when all shards are
}

// New returns an engine whose waiters race with other processes for a key. It makes no
// call to Redis. Close it when it is no longer used.
func New(backend Racing, c Config) *Engine {
	h := build(backend, c)
	h.waits = &racing{Engine: h, backend: backend}
	return h
}

// NewQueued returns an engine whose waiters stand in a queue in Redis, as New does.
func NewQueued(backend Queued, c Config) *Engine {
	h := build(backend, c)
	h.waits = newQueued(h, backend)
	return h
}

func build(backend Backend, c Config) *Engine {
	if c.Client == "" {
		c.Client = uuid.NewString()
	}
	if c.Calls == nil {
		c.Calls = NewCalls(c.Lease, nil)
	}
	h := &Engine{Config: c, backend: backend, calls: c.Calls, seed: maphash.MakeSeed(), closed: make(chan struct{})}
	for i := range h.shards {
		h.shards[i].engine, h.shards[i].keys = h, make(map[string]*keyState)
	}
	h.watchdog = watchdog.New(watchdog.Config[*hold]{Lease: c.Lease, Renew: h.renew, Ended: h.holdEnded})
	return h
}
