package engine

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Config configures an engine. [Configure] makes it from options, and [Config.Check] checks these. The lock kind, its
// backend and its discipline set what only they know.
type Config struct {
	holdfast.Settings               // the options of the locker
	Kind              string        // the lock kind's name, the prefix of New's errors
	LockerID          string        // with which its owners begin
	MaxLease          time.Duration // of the leases of a deployment; 0: no limit
	OwnerSuffix       string        // ends the owners of the locker
	Holds             Holds         // that a key may have here
	Places            bool          // waiters have places among those of all processes; set by the discipline
}

// Holds says how many holds a key may have here at the same time, and how many sections a hold.
type Holds int8

const (
	OneHold     Holds = iota // one hold, with one section at a time
	ManyHolds                // as many holds as Redis grants
	SharedHolds              // as many holds as Redis grants, each with any number of sections; of a ReaderBackend
)

// Engine manages all keys of one locker. Safe for concurrent use.
type Engine struct {
	Config                     // immutable after New
	backend    Backend         // immutable after New
	discipline Discipline      // how waiters get a key; immutable after New
	readers    *Engine         // the readers of the same keys, if this is of writers; nil: there are none; see Pair
	writers    *Engine         // the writers of the same keys, if this is of readers; nil: there are none
	Calls      *calls.Calls    // immutable after New
	observer   *observer       // nil: there is none; immutable after New
	seed       maphash.Seed    // immutable after New
	stripes    [Stripes]stripe // by hash of the key's name
	owners     atomic.Uint64
	watchdogs  watchdogs
	undoings   sync.Map      // by {server, refused}: *undoing
	pool       sync.Pool     // of waiters
	rtt        calls.Average // time of an acquire's round trip
	warned     *sync.Once    // of warnOfEviction; immutable
	closing    atomic.Bool
	closed     chan struct{} // Close closes it after all stripes
	ended      chan struct{} // closed at the end of Close
	remains    remains
}

// New returns an engine. It makes no call to Redis. Close it when it is no longer used.
func New(backend Backend, discipline Discipline, c Config) *Engine {
	e := &Engine{
		Config: c, backend: backend, discipline: discipline, Calls: backend.Calls(),
		seed: maphash.MakeSeed(), closed: make(chan struct{}), ended: make(chan struct{}), warned: new(sync.Once),
	}
	for i := range e.stripes {
		st := &e.stripes[i]
		st.engine, st.index, st.keys = e, i, make(map[string]*Key)
	}
	e.observer = newObserver(e, c.Observer)
	e.watchdogs = newWatchdogs(watchdog.Config[*Hold]{Lease: c.Lease, Renew: e.renew, Ended: e.holdEnded})
	return e
}

// Closed is closed once all waits and leases have ended by Close.
func (e *Engine) Closed() <-chan struct{} { return e.closed }

// RTT is the usual time of an acquire's round trip.
func (e *Engine) RTT() time.Duration { return time.Duration(e.rtt.Load()) }
