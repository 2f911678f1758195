package watchdog

// heap is the part of a queue for holds that come in any order. To tell a Lease its place, which is its index plus
// one, costs a visit to its memory, so each item has many children: fewer levels, fewer visits.
type heap[H Watched] struct {
	which int // index into Lease.place; immutable after New
	items []item[H]
}

const children = 8

func (q *heap[H]) first() int64 {
	if len(q.items) == 0 {
		return forever
	}
	return q.items[0].at
}

func (q *heap[H]) add(x item[H]) {
	q.items = append(q.items, item[H]{})
	q.settle(len(q.items)-1, x)
}

// remove takes out the hold at i, whose Lease has to forget its place.
func (q *heap[H]) remove(i int) {
	end := len(q.items) - 1
	last := q.items[end]
	q.items[end] = item[H]{}
	q.items = q.items[:end]
	if i < end {
		q.settle(i, last)
	}
}

// settle places x, for which i is free, where it belongs.
func (q *heap[H]) settle(i int, x item[H]) {
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

func (q *heap[H]) put(i int, x item[H]) {
	q.items[i] = x
	x.h.watched().place[q.which] = int32(i) + 1
}
