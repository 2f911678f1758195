package watchdog

import "container/heap"

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
	x := item[H]{min(at, l.until.Load()), h}
	if l.index == 0 {
		q.items = append(q.items, x)
		l.index = int32(len(q.items))
	}
	q.items[l.index-1] = x
	heap.Fix(q, int(l.index)-1)
}

// remove takes h out of the queue, if it is there.
func (q *queue[H]) remove(h H) {
	l, end := h.watched(), len(q.items)-1
	if l.index == 0 {
		return
	}
	i := int(l.index) - 1
	q.Swap(i, end)
	q.items[end] = item[H]{}
	q.items = q.items[:end]
	if i < end {
		heap.Fix(q, i)
	}
	l.index = 0
}

func (q *queue[H]) Len() int           { return len(q.items) }
func (q *queue[H]) Less(i, j int) bool { return q.items[i].at < q.items[j].at }

func (q *queue[H]) Swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	q.items[i].h.watched().index, q.items[j].h.watched().index = int32(i)+1, int32(j)+1
}

// Push and Pop make it a heap.Interface. Nobody calls them.

func (q *queue[H]) Push(any) { panic("unused") }
func (q *queue[H]) Pop() any { panic("unused") }
