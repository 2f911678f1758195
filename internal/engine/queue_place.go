package engine

import "github.com/holdfast-go/holdfast/scripts"

// Where the first waiter of a key stands among those of all processes, for the observer. The
// answer to an enter says it, heartbeats say it again, and grants say that all before have
// gone. A place that is not that of the first waiter may be too high until then: nobody tells
// of a waiter that gives up between two of this locker.

// noteTail notes the places of tickets that have entered.
func (q *queue) noteTail(list []*ticket, said scripts.Entered) {
	for i, at := len(list)-1, said.Tail; i >= 0 && at > 0; i-- {
		if said.Places[i] == scripts.Waiting && list[i].owner != said.Grant.Owner {
			list[i].at = q.gone + at
			at--
		}
	}
	q.tellPlace()
}

// freed notes that those up to a place, counted as ticket.at, have left Redis' queue.
func (q *queue) freed(at int) { q.gone = max(q.gone, at) }

// placed notes what a heartbeat said of the place of a ticket.
func (q *queue) placed(t *ticket, place int) {
	if t.at == 0 {
		t.at = q.gone + place
	}
	q.gone = t.at - place // perhaps less than it was: a grant passes over a waiter that it does not reach
	q.tellPlace()
}

// place is that of the first waiter, 1 for the next of all; 0 if it is not known.
func (q *queue) place() int {
	w := q.key.first()
	if w == nil || w.ticket == nil || w.ticket.at == 0 {
		return 0
	}
	return max(1, w.ticket.at-q.gone)
}

// tellPlace tells the observer if that place has changed.
func (q *queue) tellPlace() {
	if place := q.place(); place != q.told {
		q.told = place
		q.in.observer.place(q.key, place)
	}
}
