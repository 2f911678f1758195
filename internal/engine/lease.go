package engine

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// lease is one owner's time in a hold: from the outermost entry to the last
// Unlock. Guarded by the shard's mu unless said otherwise.
type lease struct {
	hold    *hold    // immutable
	fence   int64    // immutable
	over    error    // why the lease has ended; nil while it lives
	nesting *nesting // nil until the first nested call
	first   Entry
	entries int32 // as they should be counted in Redis
}

// Entry is one level of nesting of a lease: what each successful Lock returns.
// Safe for concurrent use.
type Entry struct {
	lease    *lease        // immutable
	signals  *entrySignals // guarded by the shard's mu; nil until somebody listens
	unlocked bool          // Unlock was called; guarded by the shard's mu
	over     bool          // it ended before its lease; guarded by the shard's mu
	public   holdfast.Lease
}

// Lease is what the caller gets; nil of a nil entry.
func (e *Entry) Lease() *holdfast.Lease {
	if e == nil {
		return nil
	}
	return &e.public
}

// entrySignals is how an entry's end is told to those who asked to be told.
type entrySignals struct {
	done  chan struct{}
	bound map[<-chan struct{}]*binding // by what ends their parents; nil: nothing does
}

// newLease begins the next lease in d, under the shard's mu.
func (d *hold) newLease() *Entry {
	l := &lease{hold: d, entries: 1}
	if d.fences() != nil {
		l.fence = d.fences().present
	}
	l.first.lease, l.first.public = l, holdfast.NewLease(&l.first)
	d.lease = l
	return &l.first
}

// signals are those that an end must fire once the shard's mu is free.
type signals struct {
	key  string
	list []*entrySignals
	any  bool // the end was news: something was alive
}

func (t signals) fire(why error) {
	if len(t.list) > 0 && why != holdfast.ErrReleased { // which each Do ends with: that allocates nothing
		why = of("lease of", t.key, why)
	}
	for _, e := range t.list {
		if e.done != nil {
			close(e.done)
		}
		for _, b := range e.bound {
			b.cancel(why)
		}
	}
}

// end ends the lease and all its entries, under the shard's mu. The caller
// fires what it returns after giving mu back.
func (l *lease) end(why error) (t signals) {
	if l.over != nil {
		return t
	}
	l.over, t.any = why, true
	t.add(&l.first)
	if l.nesting != nil {
		for e := range l.nesting.entries {
			t.add(e)
		}
	}
	return t
}

// add collects the signals of an entry that ends, under the shard's mu.
func (t *signals) add(e *Entry) {
	if told := e.signals; told != nil && !e.over {
		t.key, t.list = e.Key(), append(t.list, told)
		e.signals = &entrySignals{done: told.done}
	}
}

// Key is the key that the entry was taken on.
func (e *Entry) Key() string { return e.lease.hold.queue.key }

// Owner is the field in Redis under which the hold is counted.
func (e *Entry) Owner() string { return e.lease.hold.owner }

// Fence is the number of this lease, 0 without fencing.
func (e *Entry) Fence() int64 { return e.lease.fence }

// Deadline is the trusted deadline: moved on by every renewal.
func (e *Entry) Deadline() time.Time { return e.lease.hold.Deadline() }

// Err is nil while the entry lives, and then says why it ended.
func (e *Entry) Err() error {
	s := e.lease.hold.shard()
	s.mu.Lock()
	defer s.mu.Unlock()
	return of("lease of", e.Key(), e.err())
}

// err is Err under the shard's mu. It looks at the clock as well: the scheduler
// may be late.
func (e *Entry) err() error {
	switch l := e.lease; {
	case e.over:
		return holdfast.ErrReleased
	case l.over != nil:
		return l.over
	case !l.hold.Alive():
		return lost(l.hold.Over())
	}
	return nil
}

// told says whether the end was told already, under the shard's mu.
func (e *Entry) told() bool { return e.over || e.lease.over != nil }

// Done is closed when the entry ends.
func (e *Entry) Done() <-chan struct{} {
	s := e.lease.hold.shard()
	s.mu.Lock()
	defer s.mu.Unlock()
	told := e.listen()
	if told.done == nil {
		told.done = make(chan struct{})
		if e.told() {
			close(told.done)
		}
	}
	return told.done
}

// listen returns the entry's signals, under the shard's mu.
func (e *Entry) listen() *entrySignals {
	if e.signals == nil {
		e.signals = &entrySignals{}
	}
	return e.signals
}
