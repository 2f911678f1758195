package holdfasttest

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/watchdog"
)

// hold is one hold of a key. What may change is guarded by memory.mu.
type hold struct {
	locker    *Locker
	key       *keyState
	owner     string
	fence     int64
	label     *string // nil: none
	lease     time.Duration
	isDefault bool // default terms, and not beside a writer: such readers of a locker share a hold of a real lock
	fixed     bool
	cap       time.Time // the end of MaxHold; zero: none
	granted   time.Time
	renewed   time.Time  // a renewal; until the next outage they come every third of the lease
	entries   []*entry   // that live
	over      bool       // for the holder; the key is held until it can be released, or runs out
	last      time.Time  // the deadline of a hold that has ended
	released  chan error // of an Unlock that waits for the end of an outage; nil: none does
}

// end is when the hold ends by itself, and why. The zero time says never.
func (h *hold) end() (at time.Time, why error) {
	if h.fixed || h.over || h.key.away() {
		at, why = h.renewed.Add(h.lease), watchdog.ErrDeadline
	}
	if h.fixed {
		why = watchdog.ErrFixedLease
	}
	if !h.over && !h.cap.IsZero() && (at.IsZero() || h.cap.Before(at)) {
		at, why = h.cap, watchdog.ErrMaxHold
	}
	return at, why
}

// lastRenewal is the last one, or the grant.
func (h *hold) lastRenewal() time.Time {
	if h.fixed || h.over || h.key.away() {
		return h.renewed
	}
	every := h.lease / 3
	return h.renewed.Add(time.Since(h.renewed) / every * every)
}

func (h *hold) deadline() time.Time {
	if h.over {
		return h.last
	}
	at := h.lastRenewal().Add(h.lease)
	if !h.cap.IsZero() && h.cap.Before(at) {
		at = h.cap
	}
	return at
}

// endAll ends all entries, and with them the hold for its holder.
func (h *hold) endAll(why error) {
	if !h.over {
		h.renewed, h.last, h.over = h.lastRenewal(), h.deadline(), true
	}
	for _, e := range slices.Clone(h.entries) {
		e.end(why)
	}
}

// tell ends the Unlock that waits for the release.
func (h *hold) tell(err error) {
	if h.released != nil {
		h.released <- err
		h.released = nil
	}
}

// addEntry adds a level of nesting.
func (h *hold) addEntry() *holdfast.Lease {
	e := &entry{hold: h, done: make(chan struct{})}
	e.lease = holdfast.NewLease(e)
	h.entries = append(h.entries, e)
	return &e.lease
}

// entry is one level of nesting of a hold. What may change is guarded by memory.mu.
type entry struct {
	hold     *hold
	lease    holdfast.Lease
	done     chan struct{}
	bound    []context.CancelCauseFunc
	over     error // why it has ended
	unlocked bool
}

// boundTo is the key under which a context has the entry that it re-enters.
type boundTo struct {
	locker *Locker
	key    string
}

func (e *entry) Key() string           { return e.hold.key.name }
func (e *entry) Owner() string         { return e.hold.owner }
func (e *entry) Fence() int64          { return e.hold.fence }
func (e *entry) Done() <-chan struct{} { return e.done }

func (e *entry) Deadline() (at time.Time) {
	e.hold.key.do(func() { at = e.hold.deadline() })
	return at
}

func (e *entry) Err() (err error) {
	e.hold.key.do(func() { err = e.ended() })
	return err
}

// ended is the error of Err.
func (e *entry) ended() error { return errs.Of("lease of", e.Key(), e.over) }

func (e *entry) Bind(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, boundTo{e.hold.locker, e.Key()}, e))
	e.hold.key.do(func() {
		if e.over != nil {
			cancel(e.ended())
		} else {
			e.bound = append(e.bound, cancel)
		}
	})
	return ctx
}

// end ends the entry. It lived until now.
func (e *entry) end(why error) {
	e.over = why
	e.hold.entries = slices.DeleteFunc(e.hold.entries, func(o *entry) bool { return o == e })
	close(e.done)
	for _, cancel := range e.bound {
		cancel(e.ended())
	}
	e.bound = nil
}

func (e *entry) Unlock(ctx context.Context) error {
	return errs.Of("unlock", e.Key(), e.unlock(ctx))
}

func (e *entry) unlock(ctx context.Context) (err error) {
	h, k, released := e.hold, e.hold.key, chan error(nil)
	unknown := errs.With(holdfast.ErrUnknown, errAway)
	k.do(func() {
		switch {
		case e.unlocked:
			err = holdfast.ErrReleased
		case e.over != nil:
			err = e.over
		case len(h.entries) > 1:
			e.end(holdfast.ErrReleased)
			if k.away() {
				err = unknown
			}
		default:
			h.endAll(holdfast.ErrReleased)
			if k.away() {
				released = make(chan error, 1)
				h.released = released
			} else {
				k.release(h, nil)
			}
		}
		e.unlocked = true
	})
	if released == nil {
		return err
	}
	select {
	case err := <-released:
		return err
	case <-ctx.Done():
		return errs.WithContext(ctx, unknown)
	}
}
