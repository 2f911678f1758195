package queueing

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// A run is a row of waiters of one locker that are neighbours in Redis' queue. One hold
// serves them in turn, without a call to Redis: this is local handover in the order of
// the queue of all processes. They stay in Redis' queue until the release that names them,
// so that a crash or a loss changes no waiter's place. A fair lock is correct without
// runs; a tenure of 0 turns them off.

// run is the state of a hold that Redis' queue has granted. Guarded by the stripe's mutex
// while the hold lives, then immutable.
type run struct {
	doubt   bool     // a call of the first owner may still arrive
	members []string // owners that may be served next
	served  []string // owners that have been served
}

// Next removes and returns the next waiter of the run. It skips members that have left. A
// member that had to repeat its call to enter ends the run: a late attempt could arrive
// after the release has removed it from Redis' queue, unnoticed.
func (d *discipline) Next(k *engine.Key, h *engine.Hold) *engine.Waiter {
	r, q := runOf(h), queueOf(k)
	if r == nil || q == nil {
		return nil
	}
	for i, owner := range r.members {
		t := q.tickets[owner]
		if t == nil {
			continue
		}
		if !t.entered || t.doubt || t.confirming || !t.w.Terms.Default() {
			return nil
		}
		r.members, r.served = r.members[i+1:], append(r.served, owner)
		w := t.w
		q.done(t)
		k.Remove(w)
		return w
	}
	return nil
}

// HoldLost gives up owners of a lost hold. Those that have been served are still in Redis'
// queue. The first is given up if a late call may put it back. The other members of the run
// go on waiting.
func (d *discipline) HoldLost(k *engine.Key, h *engine.Hold) {
	doubt, gone := runOf(h).report()
	if doubt {
		gone = append(gone, h.Owner)
	}
	for _, owner := range gone {
		if q := queueOf(k); q != nil {
			q.leave(owner, owner == h.Owner, d.engine.Lease)
		} else {
			d.engine.Undo(&engine.Orphan{Name: k.Name, Owner: owner, Lease: d.engine.Lease})
		}
	}
}

func runOf(h *engine.Hold) *run {
	r, _ := h.State().(*run)
	return r
}

// report returns what a release must tell Redis.
func (r *run) report() (doubt bool, served []string) {
	if r == nil {
		return false, nil
	}
	return r.doubt, slices.Clip(r.served)
}
