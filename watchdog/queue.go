package watchdog

// queue is a heap of leases by instant, the earliest first. Each Lease knows its index, so that a lease is moved or removed
// without a search. A move of an item writes its index into the Lease, so each item has many children: fewer levels, fewer
// such writes.
// Guarded by mu of the watchdog.
type queue[H Watched] struct{ items []item[H] }

type item[H Watched] struct {
	at int64 // since the origin of the watchdog
	h  H
}

const children = 8

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

// sift puts x, for which i is free, where it belongs.
func (q *queue[H]) sift(i int, x item[H]) {
	for i > 0 {
		parent := (i - 1) / children
		if q.items[parent].at <= x.at {
			break
		}
		q.put(i, q.items[parent])
		i = parent
	}
	for {
		child := children*i + 1
		if child >= len(q.items) {
			break
		}
		for other := child + 1; other < min(children*(i+1)+1, len(q.items)); other++ {
			if q.items[other].at < q.items[child].at {
				child = other
			}
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
