package engine

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// section lasts from an outermost Lock to the last Unlock of its entries. Guarded by the
// shard's lock unless said otherwise.
type section struct {
	hold    *Hold    // immutable
	fence   int64    // immutable
	over    error    // why the section has ended; nil while it lives
	nesting *nesting // nil until the first nested call
	first   entry
	entries int32 // as they should be counted in Redis
}

// entry is one level of nesting of a section. Each successful Lock returns one, as a
// [holdfast.Lease]. Safe for concurrent use.
type entry struct {
	section   *section      // immutable
	listeners *listeners    // guarded by the shard's lock; nil until there are any
	unlocked  bool          // Unlock was called; guarded by the shard's lock
	over      bool          // ended before its section; guarded by the shard's lock
	began     time.Duration // by Calls.Now; only for the observer; immutable
	lease     holdfast.Lease
}

// newSection begins the next section in d, with the key locked.
func (d *Hold) newSection() *section {
	c := &d.first
	if d.section != nil {
		c = &section{}
	}
	c.hold, c.entries = d, 1
	if d.fences() != nil {
		c.fence = d.fences().present
	}
	c.first.section, c.first.lease = c, holdfast.NewLease(&c.first)
	d.section = c
	return c
}

// end ends the present section other than by Unlock, with the key locked. It reports whether
// there was one alive until now.
func (d *Hold) end(why error) bool {
	c := d.section
	alive := c != nil && c.end(why)
	if alive {
		d.Key.engine.observer.sectionEnded(c, why)
	}
	return alive
}

// end ends the section and all its entries, with the key locked. It reports whether the
// section lived until now.
func (c *section) end(why error) bool {
	if c.over != nil {
		return false
	}
	c.over = why
	c.first.end(why)
	if c.nesting != nil {
		for e := range c.nesting.entries {
			e.end(why)
		}
	}
	return true
}

// end notes that the entry has ended, so that unlocking the shard notifies its listeners.
// The key is locked.
func (e *entry) end(why error) {
	if l := e.listeners; l != nil && !e.over {
		k := e.key()
		if why != holdfast.ErrReleased { // each Do ends with it, and must not allocate
			why = errs.Of("lease of", e.Key(), why)
		}
		k.ended = append(k.ended, ending{l, why})
		e.listeners = &listeners{done: l.done}
	}
}

func (e *entry) key() *Key { return e.section.hold.Key }

// Key is the key of the entry, as the user calls it.
func (e *entry) Key() string { return e.key().engine.KeyOf(e.key().Name) }

// Owner is the field in Redis under which the hold is counted.
func (e *entry) Owner() string { return e.section.hold.Owner }

// Fence is the number of this section, 0 without fencing.
func (e *entry) Fence() int64 { return e.section.fence }

// Deadline is the trusted deadline. Every renewal moves it on.
func (e *entry) Deadline() time.Time { return e.section.hold.Deadline() }

// Err is nil while the entry lives, and then says why it ended.
func (e *entry) Err() error {
	k := e.key()
	k.Lock()
	defer k.Unlock()
	return errs.Of("lease of", e.Key(), e.err())
}

// err is Err with the key locked. It looks at the clock as well: the scheduler may be
// late.
func (e *entry) err() error {
	switch c := e.section; {
	case e.over:
		return holdfast.ErrReleased
	case c.over != nil:
		return c.over
	case !c.hold.Alive():
		return errs.Lost(c.hold.Over())
	}
	return nil
}

// ended says whether the listeners know of the end, with the key locked.
func (e *entry) ended() bool { return e.over || e.section.over != nil }

// Done is closed when the entry ends.
func (e *entry) Done() <-chan struct{} {
	k := e.key()
	k.Lock()
	defer k.Unlock()
	l := e.listen()
	if l.done == nil {
		l.done = make(chan struct{})
		if e.ended() {
			close(l.done)
		}
	}
	return l.done
}

// listen returns the entry's listeners, with the key locked.
func (e *entry) listen() *listeners {
	if e.listeners == nil {
		e.listeners = &listeners{}
	}
	return e.listeners
}
