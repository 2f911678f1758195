package engine

import (
	"context"

	"github.com/holdfast-go/holdfast/scripts"
)

// Where waiters stand among those of all processes, for OnPlace. The answer to an enter says
// it, heartbeats say it again of the first waiter, and grants say that all before have gone.
// The place of another waiter may be too high until then: nobody tells of a waiter that gives
// up between two of this locker.

// watchPlace has a waiter told its places, unless f is nil. It locks the key.
func (k *keyState) watchPlace(w *waiter, f func(int)) {
	if f == nil {
		return
	}
	k.Lock()
	defer k.Unlock()
	if q := k.queue(); q != nil && w.waiting {
		w.onPlace, w.places = f, make(chan int, 1)
		k.waiters.watching++
		q.tellPlaces()
	}
}

// onPlace runs the function of a waiter. If that panics or ends its goroutine, the call is
// over, and gives up its place.
func (h *Engine) onPlace(ctx context.Context, k *keyState, w *waiter, place int) {
	ended := true
	defer func() {
		if ended {
			_, _ = h.withdraw(ctx, k, w)
		}
	}()
	w.onPlace(place)
	ended = false
}

// noteTail notes the places of tickets that have entered.
func (q *queue) noteTail(list []*ticket, said scripts.Entered) {
	for i, at := len(list)-1, said.Tail; i >= 0 && at > 0; i-- {
		if said.Places[i] == scripts.Waiting && list[i].owner != said.Grant.Owner {
			list[i].at = q.gone + at
			at--
		}
	}
	q.tellPlaces()
}

// freed notes that those up to a place, counted as ticket.at, have left Redis' queue.
func (q *queue) freed(at int) { q.gone = max(q.gone, at) }

// placed notes what a heartbeat said of the place of a ticket.
func (q *queue) placed(t *ticket, place int) {
	if t.at == 0 {
		t.at = q.gone + place
	}
	q.gone = t.at - place // perhaps less than it was: a grant passes over a waiter that it does not reach
	q.tellPlaces()
}

// tellPlaces tells those waiters that want to know it of a place that has changed.
func (q *queue) tellPlaces() {
	if q.key.waiters.watching == 0 {
		return
	}
	for w := range q.key.all() {
		if w.places == nil || w.ticket == nil || w.ticket.at == 0 {
			continue
		}
		if place := max(1, w.ticket.at-q.gone); place != w.told {
			w.told = place
			select {
			case <-w.places: // its caller has not taken the one before
			default:
			}
			w.places <- place
		}
	}
}
