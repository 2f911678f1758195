package engine

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Config configures an engine. A lock kind gets it from [Configure], and calls [Config.Check].
type Config struct {
	holdfast.Settings               // with Fencing, a hold without a fence is not enough
	Kind              string        // the lock kind's name, the prefix of New's errors
	Client            string        // the locker's id, the prefix of its owners; "": a new one
	Longest           time.Duration // of the leases of a deployment; 0: no limit

	// RetryDelay is for backends with split votes: how long racing waiters pause after one,
	// and after a message as long as votes are often split. If all of them tried at once,
	// none would succeed. tries counts recent split votes. nil: no delay, and no split votes.
	RetryDelay func(tries int) time.Duration

	// WaiterTTL is how long queued waiters keep their places without a heartbeat.
	WaiterTTL time.Duration
	// GrantLease is that of their grants.
	GrantLease time.Duration
	// ConfirmGrants has queued waiters rely on no message without a call.
	ConfirmGrants bool
}

// Engine manages all keys of one locker. Safe for concurrent use.
type Engine struct {
	Config                 // immutable after New
	backend   Backend      // immutable after New
	waits     discipline   // how waiters get a key; immutable after New
	calls     *calls.Calls // immutable after New
	observer  *observer    // nil: there is none; immutable after New
	seed      maphash.Seed // immutable after New
	shards    [64]shard    // by hash of the key's name
	owners    atomic.Uint64
	watchdogs watchdogs
	undoings  sync.Map // of servers by name: *undoing
	pool      waiterPool
	trips     calls.Average // time of an acquire's round trip
	begun     sync.Once
	closing   atomic.Bool
	closed    chan struct{} // Close closes it after all shards
	ended     chan struct{} // closed at the end of Close
	remains   remains
}

// New returns an engine whose waiters race with other processes for a key. It makes no
// call to Redis. Close it when it is no longer used.
func New(backend Racing, c Config) *Engine {
	h := build(backend, c)
	h.waits = &racing{Engine: h, backend: backend}
	return h
}

// NewQueued is New for waiters that stand in a queue in Redis.
func NewQueued(backend Queued, c Config) *Engine {
	h := build(backend, c)
	h.waits = newQueued(h, backend)
	return h
}

func build(backend Backend, c Config) *Engine {
	if c.Client == "" {
		c.Client = uuid.NewString()
	}
	h := &Engine{Config: c, backend: backend, calls: backend.Calls(), seed: maphash.MakeSeed(), closed: make(chan struct{}), ended: make(chan struct{})}
	for i := range h.shards {
		h.shards[i].engine, h.shards[i].keys = h, make(map[string]*keyState)
	}
	h.observer = newObserver(h, c.Observer)
	h.watchdogs = newWatchdogs(watchdog.Config[*hold]{Lease: c.Lease, Renew: h.renew, Ended: h.holdEnded})
	return h
}
