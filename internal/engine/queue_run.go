package engine

import "slices"

// A run is a row of waiters of one locker that follow one another in Redis' queue without
// a gap. They are served in one hold, one after another, without a call to Redis: local
// hand-over, in the order of the queue over all processes. They stay in Redis' queue
// until the release that names them, so that a crash or a loss changes nobody's place. A
// fair lock is right without runs; a tenure of 0 turns them off.

// run is what belongs to a hold that Redis' queue has granted. Guarded by the shard's
// lock while the hold lives, then immutable.
type run struct {
	doubt   bool     // a call of the first owner may still arrive
	members []string // owners that may be served next
	served  []string // owners that were
}

// next takes out the next waiter of the run. Members that have left are skipped. One that
// had to repeat its call to enter ends the run: a late attempt of it could come after the
// release has taken it out of Redis' queue, and nobody would know.
func (d *queued) next(k *keyState, held *hold) *waiter {
	r, q := held.run(), k.queue()
	if r == nil || q == nil {
		return nil
	}
	for i, owner := range r.members {
		t := q.tickets[owner]
		if t == nil {
			continue
		}
		if !t.entered || t.doubt || t.granted || !t.w.terms.plain() {
			return nil
		}
		r.members, r.served = r.members[i+1:], append(r.served, owner)
		w := t.w
		q.done(t)
		k.remove(w)
		return w
	}
	return nil
}

// lost has the owners of a hold that is lost leave the queue, where those that were
// served still stand, and where a late call may put back the first. The others of its run
// go on waiting.
func (d *queued) lost(k *keyState, held *hold) {
	doubt, gone := held.run().report()
	if doubt {
		gone = append(gone, held.owner)
	}
	for _, owner := range gone {
		if q := k.queue(); q != nil {
			q.leave(owner, owner == held.owner)
		} else {
			d.cleanUp(k.name, orphan{owner, d.Lease})
		}
	}
}

// report is what a release has to say.
func (r *run) report() (doubt bool, served []string) {
	if r == nil {
		return false, nil
	}
	return r.doubt, slices.Clip(r.served)
}
