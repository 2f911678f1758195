package watchdog

import (
	"sync/atomic"
	"time"
)

// Lease is what the watchdog knows about a lease. Embed it by value in a type of your own and hand a pointer
// to that type to [Watchdog.Watch]. The zero value is ready; a Lease is watched once and never copied.
type Lease struct {
	// until is the trusted deadline in nanoseconds since *origin: positive while the lease is held, negated once it
	// has ended, 0 before Watch. Only the watchdog makes it later, under mu; anybody may negate it, once it has
	// passed. Both by compare-and-swap, so that a lease once seen to have ended stays ended.
	until  atomic.Int64
	origin *time.Time // immutable after Watch, which writes it before until
	bound  int64      // immutable after Watch: when MaxHold ends, forever if there is none
	call   uint64     // guarded by mu: the renewal call that is expected to answer, waitsForCall while one is waited for, 0 if none
	index  int32      // guarded by mu: in the queue, plus one, 0 if absent
	tries  uint8      // guarded by mu: renewals in a row whose outcome is unknown, at most maxTries
	fixed  bool       // immutable after Watch: it is not renewed
}

// Deadline returns the trusted deadline: the instant up to which the holder may believe in its lease. It carries a
// monotonic clock reading and moves, later only, with each renewal; a lease that has ended keeps its last one. It is
// the zero time before Watch, and for a lease that had ended before the watchdog began. Deadline may be called
// concurrently with everything.
func (l *Lease) Deadline() time.Time {
	until := l.until.Load()
	if until == 0 {
		return time.Time{}
	}
	return l.origin.Add(time.Duration(max(until, -until)))
}

// Alive reports whether the lease is held: watched, not ended, not forgotten, and its trusted deadline lies ahead. It
// reads the clock itself, so it is not true for longer than that even if the scheduler is late or stopped. Once
// false it stays false. Alive may be called concurrently with everything.
func (l *Lease) Alive() bool { return l.until.Load() > 0 && l.aliveAt(time.Since(*l.origin)) }

// AliveAt is Alive for a caller that has just read the clock, with its monotonic reading.
func (l *Lease) AliveAt(now time.Time) bool {
	return l.until.Load() > 0 && l.aliveAt(now.Sub(*l.origin))
}

func (l *Lease) aliveAt(now time.Duration) bool {
	for {
		until := l.until.Load()
		if until <= 0 {
			return false
		}
		if int64(now) < until {
			return true
		}
		if l.until.CompareAndSwap(until, -until) {
			return false
		}
	}
}

// Reason is why the clock ends the lease: ErrMaxHold if its present deadline is the end of MaxHold,
// ErrFixedLease if it was not to be renewed, otherwise ErrDeadline. It may be called concurrently with everything but Watch.
func (l *Lease) Reason() error {
	if until := l.until.Load(); max(until, -until) >= l.bound {
		return ErrMaxHold
	}
	if l.fixed {
		return ErrFixedLease
	}
	return ErrDeadline
}

// extend moves the trusted deadline. It reports false, and changes nothing, if it is no longer the given one: then
// somebody has seen it pass.
func (l *Lease) extend(from, until int64) bool { return l.until.CompareAndSwap(from, until) }

// end ends the lease and reports whether it was alive until now. mu is held.
func (l *Lease) end() (alive bool) {
	until := l.until.Load()
	return l.Alive() && l.until.CompareAndSwap(until, -until)
}

func (l *Lease) watched() *Lease { return l }
