package watchdog

// queue is a heap of holds, earliest instant first. Each Lease knows its place, so that a hold is moved or removed
// without a search. To tell a Lease its place costs a visit to its memory, so each item has many children: fewer
// levels, fewer visits. Guarded by mu of the watchdog.
type queue[H Watched] struct {
	which int // index into Lease.place; immutable after New
	items []item[H]
}

const children = 8

type item[H Watched] struct {
	at int64 // since the epoch of the watchdog
	h  H
}

// first returns the earliest instant, forever if the queue is empty.
func (q *queue[H]) first() int64 {
	if len(q.items) == 0 {
		return forever
	}
	return q.items[0].at
}

func (q *queue[H]) has(h H) bool { return h.watched().place[q.which] != 0 }

// set puts h into the queue at the given instant, or moves it there.
func (q *queue[H]) set(h H, at int64) {
	i := int(h.watched().place[q.which]) - 1
	if i < 0 {
		i = len(q.items)
		q.items = append(q.items, item[H]{})
	}
	q.settle(i, item[H]{at, h})
}

// remove takes h out of the queue, if it is there.
func (q *queue[H]) remove(h H) {
	place := &h.watched().place[q.which]
	if *place == 0 {
		return
	}
	i, end := int(*place)-1, len(q.items)-1
	*place = 0
	last := q.items[end]
	q.items[end] = item[H]{}
	q.items = q.items[:end]
	if i < end {
		q.settle(i, last)
	}
}

// settle places x, for which i is free, where it belongs.
func (q *queue[H]) settle(i int, x item[H]) {
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
	x.h.watched().place[q.which] = int32(i) + 1
}
