package engine

import "slices"

// A run is a row of waiters of one client that follow one another in Redis' queue
// without a gap. They are served in one hold, one after another, without a call to
// Redis: local hand-over, in the order of the queue over all processes. They stay
// in Redis' queue until the release that names them, so that a crash or a loss
// changes nobody's place. A fair lock is right without runs; a tenure of 0 turns
// them off.

// run is what belongs to a hold that a fair queue has granted. Guarded by the
// shard's mu while the hold lives, then immutable.
type run struct {
	doubt   bool     // a call of the first owner may still arrive
	members []string // owners that may be served next
	served  []string // owners that were
}

// nextMember is the next of the run who waits, under mu. Who has left is
// skipped. Whose enter had to be repeated ends the run: a late attempt of it could
// come after the release has taken it out of the queue, and nobody would know.
func (l *line) nextMember(r *run) *waiter {
	if r == nil || l == nil {
		return nil
	}
	for i, owner := range r.members {
		t := l.tickets[owner]
		if t == nil {
			continue
		}
		if !t.entered || t.doubt || t.granted {
			return nil
		}
		r.members = r.members[i:]
		return t.w
	}
	return nil
}

// serve notes that the next member has its turn, under mu.
func (l *line) serve(r *run, w *waiter) {
	t := w.ticket
	r.members, r.served = r.members[1:], append(r.served, t.owner)
	l.done(t)
}

// abandon is called when a hold is lost, under mu: its owners leave the queue,
// where those who were served still stand and whose late call may put back the
// first; the others of its run go on waiting.
func (h *Engine) abandon(q *queue, d *hold) {
	doubt, gone := d.run().report()
	if doubt {
		gone = append(gone, d.owner)
	}
	l := q.line()
	for _, owner := range gone {
		if l != nil {
			l.leave(owner, owner == d.owner)
		} else {
			h.cleanUp(q.key, orphan{owner, h.Lease})
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

// coalesce is how many may enter in one call.
func (h *Engine) coalesce() int {
	if h.Handover == 0 {
		return 1
	}
	return mostEnter
}
