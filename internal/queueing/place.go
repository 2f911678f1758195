package queueing

import "github.com/holdfast-go/holdfast/internal/wire"

// Where waiters stand among those of all processes, for OnPlace. The answer to an enter has the
// places of its waiters, each heartbeat has that of the first waiter, and a grant shows that all
// before have gone. The place of another waiter may be too high until then: no message says that
// a waiter between two of this locker has given up.

func (q *queue) notePlaces(list []*ticket, reply wire.EnterReply) {
	for i, at := len(list)-1, reply.Place; i >= 0 && at > 0; i-- {
		if reply.States[i] == wire.Waiting && list[i].owner != reply.Grant.Owner {
			list[i].at = q.placesFreed + at
			at--
		}
	}
	q.tellPlaces()
}

// placed notes the reply to a heartbeat on the place of a ticket.
func (q *queue) placed(t *ticket, place int) {
	if t.at == 0 {
		t.at = q.placesFreed + place
	}
	q.placesFreed = t.at - place // perhaps less than it was: a grant passes over a waiter that it does not reach
	q.tellPlaces()
}

// tellPlaces tells waiters that want to know it their place, if it has changed.
func (q *queue) tellPlaces() {
	if !q.key.Watching() {
		return
	}
	for w := range q.key.All() {
		if t := ticketOf(w); t != nil && t.at != 0 {
			w.Tell(max(1, t.at-q.placesFreed))
		}
	}
}
