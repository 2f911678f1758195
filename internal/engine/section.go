package engine

import (
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// section lasts from an outermost Lock to the last Unlock of its entries. Guarded by the
// stripe's mutex unless said otherwise.
type section struct {
	hold    *Hold    // immutable
	fence   int64    // immutable
	cause   error    // why the section has ended; nil while it lives
	nesting *nesting // nil until the first nested call
	first   entry
	entries int32 // as they should be counted in Redis
}

// entry is one level of nesting of a section. Each successful Lock returns one, as a
// [holdfast.Lease]. Safe for concurrent use.
type entry struct {
	section    *section      // immutable
	listeners  *listeners    // guarded by the stripe's mutex; nil until there are any
	unlocked   bool          // Unlock was called; guarded by the stripe's mutex
	endedEarly bool          // ended before its section; guarded by the stripe's mutex
	began      time.Duration // by Calls.Now; only for the observer; immutable
	lease      holdfast.Lease
}

// newSection begins the next section of h, with the key's mutex held.
func (h *Hold) newSection() *section {
	s := &h.first
	if h.section != nil {
		s = &section{}
	}
	s.hold, s.entries = h, 1
	if h.fences() != nil {
		s.fence = h.fences().current
	}
	s.first.section, s.first.lease = s, holdfast.NewLease(&s.first)
	h.section = s
	if h.extras.sections != nil {
		h.extras.sections[s] = struct{}{}
	}
	return s
}

// begin begins a section of the hold for a caller that began to ask at since, by Calls.Now, with the
// key's mutex held.
func (h *Hold) begin(how holdfast.How, since time.Duration) *holdfast.Lease {
	s := h.newSection()
	h.Key.engine.observer.acquired(&s.first, how, since)
	return &s.first.lease
}

// cancel ends the sections of the hold that live, with the key's mutex held. It reports whether there were any.
func (h *Hold) cancel(why error) (alive bool) {
	alive = h.section != nil && h.section.cancel(why)
	for s := range h.extras.sections {
		alive = s.cancel(why) || alive
	}
	return alive
}

// cancel is end for a section that no Unlock ends.
func (s *section) cancel(why error) bool {
	alive := s.end(why)
	if alive {
		s.hold.Key.engine.observer.sectionEnded(s, why)
	}
	return alive
}

// end ends the section and all its entries, with the key's mutex held. It reports whether the
// section lived until now.
func (s *section) end(why error) bool {
	if s.cause != nil {
		return false
	}
	s.cause = why
	s.first.notify(why)
	if s.nesting != nil {
		for en := range s.nesting.entries {
			en.notify(why)
		}
	}
	return true
}

// notify has the stripe's next Unlock tell the listeners that the entry has ended. The key's mutex is held.
func (en *entry) notify(why error) {
	if l := en.listeners; l != nil && !en.endedEarly {
		k := en.key()
		if why != holdfast.ErrReleased { // each Do ends with it, and must not allocate
			why = errs.Of("lease of", en.Key(), why)
		}
		k.notices = append(k.notices, notice{to: l, why: why})
		en.listeners = &listeners{done: l.done}
	}
}

func (en *entry) key() *Key { return en.section.hold.Key }

// What a [holdfast.Lease] shows of its entry.
func (en *entry) Key() string         { return en.key().engine.KeyOf(en.key().Name) } // as the user calls it
func (en *entry) Owner() string       { return en.section.hold.Owner }                // the field in Redis under which the hold is counted
func (en *entry) Fence() int64        { return en.section.fence }                     // of this section, 0 without fencing
func (en *entry) Deadline() time.Time { return en.section.hold.Deadline() }           // trusted; every renewal moves it later

// Err is nil while the entry lives, and then says why it ended.
func (en *entry) Err() error {
	k := en.key()
	k.Lock()
	defer k.Unlock()
	return errs.Of("lease of", en.Key(), en.err())
}

// err is Err with the key's mutex held. It looks at the clock as well: the scheduler may be
// late.
func (en *entry) err() error {
	switch s := en.section; {
	case en.endedEarly:
		return holdfast.ErrReleased
	case s.cause != nil:
		return s.cause
	case !s.hold.Alive():
		return errs.Lost(s.hold.Reason())
	}
	return nil
}

// ended reports whether the listeners know of the end, with the key's mutex held.
func (en *entry) ended() bool { return en.endedEarly || en.section.cause != nil }

// Done is closed when the entry ends.
func (en *entry) Done() <-chan struct{} {
	k := en.key()
	k.Lock()
	defer k.Unlock()
	l := en.listen()
	if l.done == nil {
		l.done = make(chan struct{})
		if en.ended() {
			close(l.done)
		}
	}
	return l.done
}

// listen returns the entry's listeners, with the key's mutex held.
func (en *entry) listen() *listeners {
	if en.listeners == nil {
		en.listeners = &listeners{}
	}
	return en.listeners
}
