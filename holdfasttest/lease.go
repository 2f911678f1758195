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
func (d *hold) end() (at time.Time, why error) {
	if d.fixed || d.over || d.key.away() {
		at, why = d.renewed.Add(d.lease), watchdog.ErrDeadline
	}
	if d.fixed {
		why = watchdog.ErrFixedLease
	}
	if !d.over && !d.cap.IsZero() && (at.IsZero() || d.cap.Before(at)) {
		at, why = d.cap, watchdog.ErrMaxHold
	}
	return at, why
}

// lastRenewal is the last one, or the grant.
func (d *hold) lastRenewal() time.Time {
	if d.fixed || d.over || d.key.away() {
		return d.renewed
	}
	every := d.lease / 3
	return d.renewed.Add(time.Since(d.renewed) / every * every)
}

func (d *hold) deadline() time.Time {
	if d.over {
		return d.last
	}
	at := d.lastRenewal().Add(d.lease)
	if !d.cap.IsZero() && d.cap.Before(at) {
		at = d.cap
	}
	return at
}

// endAll ends all entries, and with them the hold for its holder.
func (d *hold) endAll(why error) {
	if !d.over {
		d.renewed, d.last, d.over = d.lastRenewal(), d.deadline(), true
	}
	for _, e := range slices.Clone(d.entries) {
		e.end(why)
	}
}

// tell ends the Unlock that waits for the release.
func (d *hold) tell(err error) {
	if d.released != nil {
		d.released <- err
		d.released = nil
	}
}

// addEntry adds a level of nesting.
func (d *hold) addEntry() *holdfast.Lease {
	e := &entry{hold: d, done: make(chan struct{})}
	e.lease = holdfast.NewLease(e)
	d.entries = append(d.entries, e)
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
	d, k, released := e.hold, e.hold.key, chan error(nil)
	unknown := errs.With(holdfast.ErrUnknown, errAway)
	k.do(func() {
		switch {
		case e.unlocked:
			err = holdfast.ErrReleased
		case e.over != nil:
			err = e.over
		case len(d.entries) > 1:
			e.end(holdfast.ErrReleased)
			if k.away() {
				err = unknown
			}
		default:
			d.endAll(holdfast.ErrReleased)
			if k.away() {
				released = make(chan error, 1)
				d.released = released
			} else {
				k.release(d, nil)
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
