package watchdog

// queue is a heap of leases by instant, the earliest first. Each Lease knows its index, so that a lease is moved or removed
// without a search. Guarded by mu of the watchdog.
type queue[H Watched] struct{ items []item[H] }

type item[H Watched] struct {
	at int64 // since the origin of the watchdog
	h  H
}

// first returns the earliest instant, forever if the queue is empty.
func (q *queue[H]) first() int64 {
	if len(q.items) == 0 {
		return forever
	}
	return q.items[0].at
}

// has reports whether h is in the queue: watched, and neither ended nor forgotten.
func (q *queue[H]) has(h H) bool { return h.watched().index != 0 }

// set puts h into the queue at the given instant, or when its lease ends, if that is earlier; or moves it there.
func (q *queue[H]) set(at int64, h H) {
	l := h.watched()
	if l.index == 0 {
		q.items = append(q.items, item[H]{})
		l.index = int32(len(q.items))
	}
	q.sift(int(l.index)-1, item[H]{min(at, l.until.Load()), h})
}

// remove takes h out of the queue, if it is there.
func (q *queue[H]) remove(h H) {
	l, end := h.watched(), len(q.items)-1
	if l.index == 0 {
		return
	}
	i, last := int(l.index)-1, q.items[end]
	q.items[end] = item[H]{}
	q.items = q.items[:end]
	if i < end {
		q.sift(i, last)
	}
	l.index = 0
}

// sift puts x, for which i is free, where it belongs. A swap at each step, as of container/heap, would cost a renewal a tenth of
// its CPU time with 20 000 leases.
func (q *queue[H]) sift(i int, x item[H]) {
	for ; i > 0 && q.items[(i-1)/2].at > x.at; i = (i - 1) / 2 {
		q.put(i, q.items[(i-1)/2])
	}
	for child := 2*i + 1; child < len(q.items); child = 2*i + 1 {
		if child+1 < len(q.items) && q.items[child+1].at < q.items[child].at {
			child++
		}
		if x.at <= q.items[child].at {
			break
		}
		q.put(i, q.items[child])
		i = child
	}
	q.put(i, x)
}

func (q *queue[H]) put(i int, x item[H]) {
	q.items[i] = x
	x.h.watched().index = int32(i) + 1
}
