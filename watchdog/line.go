package watchdog

// line is the part of a queue for holds that come nearly in order: a ring in which those that left early leave holes,
// but not at either end. A hole keeps its instant. The place of a Lease is its index, negated, less one.
type line[H Watched] struct {
	which int       // index into Lease.place; immutable after New
	items []item[H] // the ring
	head  int       // index of the first item
	used  int       // items from head on, holes included
	alive int       // items without holes
}

// nearly is how many items may be overtaken: a few batches, as the calls of one time do not return in their order.
const nearly = 400

func (q *line[H]) place(h H) *int32 { return &h.watched().place[q.which] }

// at returns the index of the i-th item.
func (q *line[H]) at(i int) int {
	if i += q.head; i >= len(q.items) {
		i -= len(q.items)
	}
	return i
}

func (q *line[H]) first() int64 {
	if q.used == 0 {
		return forever
	}
	return q.items[q.head].at
}

// add puts holds where their instant belongs, and reports false if that is too far from the end.
func (q *line[H]) add(at int64, holds []H) bool {
	if q.used > nearly && at < q.items[q.at(q.used-nearly)].at {
		return false
	}
	n := len(holds)
	if q.used+n > len(q.items) {
		q.renumber(n)
	}
	i := q.used
	for ; i > 0 && at < q.items[q.at(i-1)].at; i-- {
		q.put(i-1+n, q.items[q.at(i-1)])
	}
	for j, h := range holds {
		q.put(i+j, item[H]{at, h})
	}
	q.used += n
	q.alive += n
	return true
}

func (q *line[H]) put(i int, x item[H]) {
	at := q.at(i)
	q.items[at] = x
	if x.present() {
		*q.place(x.h) = -int32(at) - 1
	}
}

// present tells an item from a hole.
func (x item[H]) present() bool {
	var nobody H
	return x.h != nobody
}

// renumber closes the holes and makes room, for n and a quarter: it is seldom needed then, and little is wasted.
func (q *line[H]) renumber(n int) {
	items := make([]item[H], 0, q.alive+n+q.alive/4+8)
	for i := range q.used {
		if x := q.items[q.at(i)]; x.present() {
			items = append(items, x)
			*q.place(x.h) = -int32(len(items))
		}
	}
	q.items, q.head, q.used = items[:cap(items)], 0, len(items)
}

// remove takes out the hold at index i, whose Lease has to forget its place.
func (q *line[H]) remove(i int) {
	q.items[i] = item[H]{at: q.items[i].at}
	q.alive--
	for q.used > 0 && !q.items[q.at(q.used-1)].present() {
		q.used--
	}
	for q.used > 0 && !q.items[q.head].present() {
		q.head = q.at(1)
		q.used--
	}
}
