package holdfasttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/check"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/watchdog"
)

// ErrNotHeld: [Locker.Lose] was called for a key that the locker does not hold.
var ErrNotHeld = errors.New("not held by this locker")

// Lose makes Redis forget that this locker holds key. Its lease, or its leases of a semaphore, have
// ended with [holdfast.ErrLost] when Lose returns, and the key goes to its next waiter. It fails with
// ErrNotHeld if there is none.
func (l *Locker) Lose(key string) (err error) {
	l.memory.do(func() {
		err = errs.Of("lose", key, ErrNotHeld)
		if k := l.memory.keys[key]; k != nil {
			for _, h := range k.holdsOf(l) {
				if !h.over {
					k.lose(h, watchdog.ErrNotOurs)
					err = nil
				}
			}
		}
	})
	return err
}

// Hold makes another process hold key, or take a permit of a semaphore, until release is called. It
// fails as TryLock does, with [holdfast.ErrNotAcquired] if the key is held.
func (l *Locker) Hold(key string) (release func(), err error) {
	other := l.Another()
	other.settings.MaxHold = 0
	lease, err := other.TryLock(context.Background(), key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // in an outage, release does not wait
	return func() { _ = lease.Unlock(ctx) }, nil
}

// Outage makes Redis unavailable to all lockers of this memory, for d from now on; 0 brings
// it back. Meanwhile TryLock, Inspect and ForceUnlock fail with [holdfast.ErrUnavailable], as
// waits do after WithMaxOutage; Unlock waits; and no lease is renewed. A lease is lost at its
// deadline, which is between two thirds of WithLease and all of it later.
func (l *Locker) Outage(d time.Duration) {
	m := l.memory
	m.do(func() {
		now := time.Now()
		if !m.away() && d > 0 {
			for _, k := range m.keys {
				for _, h := range k.holds {
					h.renewed = h.lastRenewal()
				}
			}
			m.since = now
		}
		m.back = now.Add(d)
	})
}

// Inspect implements [holdfast.Operator]. Waiting is how many wait in all lockers of this memory.
func (l *Locker) Inspect(ctx context.Context, key string) (s holdfast.Status, err error) {
	err = l.ask(ctx, "inspect", key, func(k *keyState) { s = k.status() })
	return s, err
}

// Locks implements [holdfast.Operator]. It yields the locks that are held when the loop begins.
func (l *Locker) Locks(ctx context.Context, prefix string) iter.Seq2[holdfast.Status, error] {
	return func(yield func(holdfast.Status, error) bool) {
		var held []holdfast.Status
		err := l.call(ctx, func() {
			for name, k := range l.memory.keys {
				if len(k.holds) > 0 && strings.HasPrefix(name, prefix) {
					held = append(held, k.status())
				}
			}
		})
		if err != nil {
			yield(holdfast.Status{}, errs.Of("list", prefix+"*", err))
		}
		for _, s := range held {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func (k *keyState) status() holdfast.Status {
	s := holdfast.Status{Key: k.name, Waiting: len(k.waiters)}
	if k.semaphore && len(k.holds) > 0 {
		s.Permits = k.permits
		for _, h := range slices.SortedStableFunc(slices.Values(k.holds), byEnd) {
			s.Holders = append(s.Holders, holdfast.Holder{
				Owner: h.owner, Label: *cmp.Or(h.label, new("")), Entries: len(h.entries), Remaining: time.Until(h.deadline()),
			})
		}
	}
	if k.readWrite && len(k.holds) > 0 {
		s.Mode = "read"
		shared := map[*Locker]bool{}
		for _, h := range k.holds {
			switch {
			case !h.locker.reads:
				s.Mode = "write"
			case h.isDefault:
				shared[h.locker] = true
			default:
				s.Readers++
			}
		}
		s.Readers += len(shared)
	}
	if h := k.first(); h != nil {
		s.Held, s.Owner, s.Label, s.Entries, s.Remaining = true, h.owner, *cmp.Or(h.label, new("")), len(h.entries), time.Until(h.deadline())
		for _, h := range k.holds {
			if k.readWrite { // until the last of them ends
				s.Remaining = max(s.Remaining, time.Until(h.deadline()))
			}
		}
	}
	return s
}

// ForceUnlock implements [holdfast.Operator].
func (l *Locker) ForceUnlock(ctx context.Context, key string) (held bool, err error) {
	err = l.ask(ctx, "force-unlock", key, func(k *keyState) {
		held = len(k.holds) > 0
		for _, h := range slices.Clone(k.holds) {
			why := errs.ErrForced
			if h.locker != l {
				why = watchdog.ErrNotOurs
			}
			k.lose(h, why)
		}
	})
	return held, err
}

// ask makes a call for a key, other than a lock call.
func (l *Locker) ask(ctx context.Context, what, key string, f func(*keyState)) error {
	err := check.Key(key)
	if err == nil {
		err = l.call(ctx, func() { f(l.memory.key(key)) })
	}
	return errs.Of(what, key, err)
}

// call makes a call other than a lock call.
func (l *Locker) call(ctx context.Context, f func()) (err error) {
	l.memory.do(func() {
		switch {
		case ctx.Err() != nil:
			err = errs.DoneBefore(ctx)
		case l.closed:
			err = holdfast.ErrClosed
		case l.memory.away():
			err = errs.With(holdfast.ErrUnavailable, errAway)
		default:
			f()
		}
	})
	return err
}

// Close implements [holdfast.Operator].
func (l *Locker) Close() error {
	m, left := l.memory, 0
	m.do(func() {
		if l.closed {
			return
		}
		l.closed = true
		for _, k := range m.keys {
			for _, w := range slices.Clone(k.waiters) {
				if w.locker == l {
					k.finish(w, result{err: holdfast.ErrClosed})
				}
			}
			for _, h := range k.holdsOf(l) {
				h.endAll(holdfast.ErrClosed)
				if m.away() {
					left++
					h.tell(errs.With(holdfast.ErrUnknown, errAway))
				} else {
					k.release(h, nil)
				}
			}
		}
	})
	if left > 0 {
		return fmt.Errorf("holdfast: close: %w: %d holds were not released: %w", holdfast.ErrUnknown, left, errAway)
	}
	return nil
}
