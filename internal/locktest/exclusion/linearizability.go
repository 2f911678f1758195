package exclusion

import (
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// A history of locking is linearizable if each operation can be given one instant
// between its call and its return such that, one after the other, they make sense
// on a key that is free or has one owner:
//
//	acquired  free → owned by this lease
//	released  owned by this lease → free: an Unlock that said nil
//	expired   owned by this lease → free: nobody's call. Of a lease that was not
//	          released, at an instant from its trusted deadline on (G1) up to
//	          when Redis must have dropped it
//	refused   owned by anybody: a TryLock that said ErrNotAcquired
//
// A refusal may come from the locker itself, which knows that somebody of its own
// has the key or wants it: those of lockers that several goroutines share are not
// recorded.

type happening string

const (
	wasAcquired happening = "acquired"
	wasReleased happening = "released"
	hasExpired  happening = "expired"
	wasRefused  happening = "refused"
)

// event is the input of an operation; it has no output, since what happened tells it.
type event struct {
	key   string
	what  happening
	lease int
}

var lockModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, o := range history {
			key := o.Input.(event).key
			byKey[key] = append(byKey[key], o)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return 0 }, // free; else the number of the lease
	Step: func(state, input, _ any) (bool, any) {
		e := input.(event)
		switch e.what {
		case wasAcquired:
			return state == 0, e.lease
		case wasReleased, hasExpired:
			return state == e.lease, 0
		default:
			return state != 0, state
		}
	},
}

// history is what the goroutines of a run record.
type history struct {
	began time.Time // immutable

	mu     sync.Mutex
	all    []porcupine.Operation // guarded by mu
	leases int                   // guarded by mu
	counts map[happening]int     // guarded by mu
}

// add records what happened to a lease between two instants; a new lease if it is
// 0. It returns the lease.
func (h *history) add(client int, e event, from, to time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.what == wasAcquired {
		h.leases++
		e.lease = h.leases
	}
	h.counts[e.what]++
	h.all = append(h.all, porcupine.Operation{
		ClientId: client, Input: e, Call: int64(from.Sub(h.began)), Return: int64(to.Sub(h.began)),
	})
	return e.lease
}

// lacks says whether less has happened.
func (h *history) lacks(least map[happening]int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for what, n := range least {
		if h.counts[what] < n {
			return true
		}
	}
	return false
}

// check reports whether the history is linearizable; Unknown when it cannot tell
// in time.
func (h *history) check() porcupine.CheckResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	return porcupine.CheckOperationsTimeout(lockModel, slices.Clone(h.all), 2*Patience)
}

// dropRefusals forgets the refusals of key.
func (h *history) dropRefusals(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = slices.DeleteFunc(h.all, func(o porcupine.Operation) bool {
		e := o.Input.(event)
		return e.key == key && e.what == wasRefused
	})
}
