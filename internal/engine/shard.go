package engine

import (
	"hash/maphash"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// shard guards a part of the keys and all their state. Its Unlock also notifies the
// listeners of the entries that ended under the lock, so that no caller can forget to.
type shard struct {
	engine *Engine // immutable
	mu     sync.Mutex
	keys   map[string]*keyState // by name; guarded by mu
	closed bool                 // guarded by mu
	ended  []ending             // guarded by mu
	passed calls.Average        // 1024 times the releases that a wait for one of the keys lets pass
}

// ending is the end of an entry of which the listeners have yet to hear.
type ending struct {
	of  *listeners
	why error
}

func (s *shard) Lock() { s.mu.Lock() }

func (s *shard) Unlock() {
	ended := s.ended
	s.ended = nil
	s.mu.Unlock()
	for _, e := range ended {
		e.of.notify(e.why)
	}
}

func (h *Engine) shardOf(name string) *shard {
	return &h.shards[maphash.String(h.seed, name)%uint64(len(h.shards))]
}

// keyState is what this locker knows of one key. It exists while the key is held, wanted
// or being released here. Guarded by its shard's lock.
//
// With racing waiters, exactly one of these has the key in hand at every moment: the
// caller of a first attempt, a hold, an Unlock that releases, or the loop of the race.
type keyState struct {
	*shard           // immutable
	name    string   // in Redis, see nameOf; immutable
	hold    *hold    // nil: not held here
	waiters *waiters // nil until the first waiter
	ending  *hold    // the last of those being released; nil: none
	calls   int16    // first attempts, releases and loops under way
}

// begin returns the state of a key, made if need be, with one more call under way. Close
// waits for that call. The shard is locked and not closed.
func (s *shard) begin(name string) *keyState {
	k := s.keys[name]
	if k == nil {
		k = &keyState{shard: s, name: name}
		s.keys[name] = k
	}
	k.calls++
	s.engine.calls.Begin()
	return k
}

func (k *keyState) drop() {
	if k.keys[k.name] == k {
		delete(k.keys, k.name)
	}
}

// idle says whether the key is neither held nor wanted here.
func (k *keyState) idle() bool { return k.hold == nil && k.calls == 0 && k.first() == nil }

// notAcquired is ErrNotAcquired, which tells of a hold of this locker.
func (k *keyState) notAcquired() error {
	if k.hold != nil {
		return errs.HeldHere(k.engine.calls.Now() - k.hold.granted)
	}
	return holdfast.ErrNotAcquired
}

// endedRelease notes that a hold is no longer being released.
func (k *keyState) endedRelease(d *hold) {
	if k.ending == d {
		k.ending = nil
	}
}

// heldBy says whether owner has the key here, or is releasing it. Redis has ended earlier
// owners than those.
func (k *keyState) heldBy(owner string) bool {
	return k != nil && (k.hold != nil && k.hold.owner == owner || k.ending != nil && k.ending.owner == owner)
}
