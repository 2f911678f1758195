package watchdog

// queue holds leases by instant, the earliest first. Most are put in at instants that only grow, as what is
// renewed in order is due in order: they stand in a line, which costs next to nothing. The others go to a heap.
// Each Lease knows its place, so that a hold is moved or removed without a search. Guarded by mu of the watchdog.
type queue[H Watched] struct {
	line line[H]
	heap heap[H]
}

type item[H Watched] struct {
	at int64 // since the epoch of the watchdog
	h  H
}

// newQueue returns an empty queue whose places are those of the given index in Lease.place.
func newQueue[H Watched](which int) queue[H] {
	return queue[H]{line[H]{which: which}, heap[H]{which: which}}
}

func (q *queue[H]) len() int { return q.line.alive + len(q.heap.items) }

// first returns the earliest instant, forever if the queue is empty.
func (q *queue[H]) first() int64 { return min(q.line.first(), q.heap.first()) }

// head returns the hold of the earliest instant. The queue must not be empty.
func (q *queue[H]) head() H {
	if q.line.first() <= q.heap.first() {
		return q.line.items[q.line.head].h
	}
	return q.heap.items[0].h
}

func (q *queue[H]) has(h H) bool { return *q.line.place(h) != 0 }

// set puts holds into the queue at the given instant, or moves them there.
func (q *queue[H]) set(at int64, holds ...H) {
	for _, h := range holds {
		q.remove(h)
	}
	if q.line.add(at, holds) {
		return
	}
	for _, h := range holds {
		q.heap.add(item[H]{at, h})
	}
}

// remove takes h out of the queue, if it is there.
func (q *queue[H]) remove(h H) {
	place := q.line.place(h)
	switch at := int(*place); {
	case at > 0:
		q.heap.remove(at - 1)
	case at < 0:
		q.line.remove(-at - 1)
	}
	*place = 0
}
