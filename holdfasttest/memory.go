package holdfasttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/watchdog"
)

// memory is the Redis of some lockers, with all that waits for it. Guarded by mu.
type memory struct {
	mu    sync.Mutex
	keys  map[string]*keyState
	since time.Time   // the start of the outage; zero: there is none
	back  time.Time   // its end
	timer *time.Timer // for what happens next by itself; nil: nothing does
	fence int64       // the last number

	permits   int  // how many may hold a key at the same time; immutable
	semaphore bool // otherwise there is one, of a lock; immutable
	readWrite bool // one writer, or any number of readers; immutable
}

// keyState is a key that is held or wanted.
type keyState struct {
	*memory
	name    string
	holds   []*hold   // the oldest first; none: free
	waiters []*waiter // in their order
}

// waiter is a call that has not been served yet.
type waiter struct {
	locker  *Locker
	key     *keyState
	outer   *entry // of a nested call
	beside  bool   // a reader wants a hold beside outer, of a writer
	options holdfast.LockOptions
	since   time.Time
	ready   chan result // one slot
	places  chan int    // one slot; for OnPlace
	told    int         // the last of those
}

type result struct {
	lease *holdfast.Lease
	err   error
}

var errAway = errors.New("outage of holdfasttest")

func (m *memory) away() bool { return !m.since.IsZero() }

// do runs f on the memory as it is now, and then does what follows.
func (m *memory) do(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUp()
	f()
	m.catchUp()
}

// catchUp does all that is due: ends what has run out, serves waiters, and sets the timer.
func (m *memory) catchUp() {
	now := time.Now()
	if m.away() && !now.Before(m.back) {
		m.expire(m.back)
		m.restore()
	}
	m.expire(now)
	if m.timer != nil {
		m.timer.Stop()
		m.timer = nil
	}
	var next time.Time
	due := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for name, k := range m.keys {
		k.serve(now)
		k.tellPlaces()
		if len(k.holds)+len(k.waiters) == 0 {
			delete(m.keys, name)
		}
		for _, h := range k.holds {
			at, _ := h.end()
			due(at)
		}
		for _, w := range k.waiters {
			due(w.overdue())
		}
	}
	if m.away() {
		due(m.back)
	}
	if !next.IsZero() {
		m.timer = time.AfterFunc(next.Sub(now), func() { m.do(func() {}) })
	}
}

// expire ends all holds that end by themselves before t, or then.
func (m *memory) expire(t time.Time) {
	for _, k := range m.keys {
		for _, h := range slices.Clone(k.holds) {
			for slices.Contains(k.holds, h) {
				at, why := h.end()
				if at.IsZero() || t.Before(at) {
					break
				}
				k.lose(h, why)
			}
		}
	}
}

// restore ends the outage: leases are renewed, and what was unlocked meanwhile is released.
func (m *memory) restore() {
	for _, k := range m.keys {
		for _, h := range slices.Clone(k.holds) {
			switch {
			case h.over:
				k.release(h, nil)
			case !h.fixed:
				h.renewed = m.back
			}
		}
	}
	m.since = time.Time{}
}

func (m *memory) key(name string) *keyState {
	k := m.keys[name]
	if k == nil {
		k = &keyState{memory: m, name: name}
		m.keys[name] = k
	}
	return k
}

// serve ends the waits that can end now.
func (k *keyState) serve(now time.Time) {
	full := false // for a waiter, and so for those behind it
	for _, w := range slices.Clone(k.waiters) {
		switch {
		case w.outer != nil && w.outer.over != nil:
			k.finish(w, result{err: w.outer.over})
		case k.away():
			if !now.Before(w.overdue()) {
				k.finish(w, result{err: errs.With(holdfast.ErrUnavailable, errAway)})
			}
		case w.outer != nil && !w.beside:
			k.finish(w, result{lease: w.outer.hold.addEntry()})
		case w.beside, !full && k.admits(w):
			h := w.take(now)
			k.holds = append(k.holds, h)
			k.finish(w, result{lease: h.addEntry()})
		default:
			full = true
		}
	}
}

// admits reports whether w can hold the key beside those that do.
func (k *keyState) admits(w *waiter) bool {
	if k.readWrite && w.locker.reads {
		return !slices.ContainsFunc(k.holds, func(h *hold) bool { return !h.locker.reads })
	}
	return len(k.holds) < k.permits
}

// tellPlaces sends waiters the places that have changed.
func (k *keyState) tellPlaces() {
	place := 0
	for _, w := range k.waiters {
		if w.outer != nil {
			continue
		}
		if place++; place != w.told {
			w.told = place
			select {
			case <-w.places:
			default:
			}
			w.places <- place
		}
	}
}

func (k *keyState) finish(w *waiter, r result) {
	k.remove(w)
	w.ready <- r
}

// remove reports whether w still waited.
func (k *keyState) remove(w *waiter) bool {
	before := len(k.waiters)
	k.waiters = slices.DeleteFunc(k.waiters, func(o *waiter) bool { return o == w })
	return len(k.waiters) < before
}

// lose ends a hold without its holder's doing.
func (k *keyState) lose(h *hold, why error) {
	h.endAll(errs.Lost(why))
	if why == watchdog.ErrMaxHold && k.away() {
		return // it cannot be released, and runs out
	}
	k.release(h, errs.With(holdfast.ErrUnknown, errAway))
}

// release ends a hold in Redis, and tells the Unlock that waits for it.
func (k *keyState) release(h *hold, err error) {
	h.tell(err)
	k.holds = slices.DeleteFunc(k.holds, func(o *hold) bool { return o == h })
	if k.readWrite && !h.locker.reads { // now it is the turn of the readers that have waited
		turn := map[bool]int{true: -1}
		slices.SortStableFunc(k.waiters, func(a, b *waiter) int { return turn[a.locker.reads] - turn[b.locker.reads] })
	}
}

// first is the oldest hold, or nil; of a semaphore, the one whose lease ends first.
func (k *keyState) first() *hold {
	switch {
	case len(k.holds) == 0:
		return nil
	case k.semaphore:
		return slices.MinFunc(k.holds, byEnd)
	}
	return k.holds[0]
}

func byEnd(a, b *hold) int { return a.deadline().Compare(b.deadline()) }

// holdsOf are those of a locker.
func (k *keyState) holdsOf(l *Locker) []*hold {
	return slices.DeleteFunc(slices.Clone(k.holds), func(h *hold) bool { return h.locker != l })
}

// whyNot says why w is not served.
func (k *keyState) whyNot(w *waiter) error {
	switch h := k.first(); {
	case w.outer == nil && h != nil && h.locker == w.locker && !h.over && !h.locker.reads && !k.semaphore:
		return errs.Here(time.Since(h.granted), h.label)
	case k.away():
		return errs.With(holdfast.ErrUnavailable, errAway)
	case h != nil && w.locker.reads && h.locker.reads: // a writer waits
		return holdfast.ErrNotAcquired
	case h != nil:
		return errs.HeldBy(*cmp.Or(h.label, new("")))
	}
	return holdfast.ErrNotAcquired
}

// overdue is when the outage has lasted too long for w; zero: there is none.
func (w *waiter) overdue() time.Time {
	since := w.key.since
	if since.IsZero() {
		return since
	}
	if w.since.After(since) {
		since = w.since
	}
	return since.Add(*w.locker.settings.MaxOutage)
}

// take makes the hold of a waiter.
func (w *waiter) take(now time.Time) *hold {
	l, o := w.locker, w.options
	l.owners++
	h := &hold{locker: l, key: w.key, owner: fmt.Sprintf("holdfasttest-%d:0%d", l.id, l.owners), lease: l.settings.Lease, label: o.Label, granted: now, renewed: now}
	h.isDefault = o.FixedLease == nil && o.MaxHold == nil && o.Label == nil && !w.beside
	switch {
	case o.FixedLease != nil:
		h.lease, h.fixed = *o.FixedLease, true
	case o.MaxHold != nil:
		h.cap = now.Add(*o.MaxHold)
	case l.settings.MaxHold > 0:
		h.cap = now.Add(l.settings.MaxHold)
	}
	switch {
	case w.beside:
		h.fence = w.outer.hold.fence
	case l.settings.Fencing:
		l.memory.fence++
		h.fence = l.memory.fence
	}
	return h
}

// ask serves a call immediately if that is possible. If the call must wait, and may, its
// waiter is left in the queue.
func (m *memory) ask(ctx context.Context, l *Locker, key string, o holdfast.LockOptions, wait bool) (w *waiter, err error) {
	m.do(func() {
		outer, _ := ctx.Value(boundTo{l, key}).(*entry)
		other, _ := ctx.Value(boundTo{l.half, key}).(*entry)
		beside := l.reads && outer == nil && other != nil
		if beside {
			outer = other
		}
		switch {
		case ctx.Err() != nil:
			err = errs.DoneBefore(ctx)
		case !l.reads && other != nil && other.over == nil && (outer == nil || outer.over != nil):
			err = holdfast.ErrUpgrade
		case outer != nil && !beside && (o.FixedLease != nil || o.MaxHold != nil || o.Label != nil):
			err = errs.ErrNested
		case outer != nil:
			err = outer.over
		case l.closed:
			err = holdfast.ErrClosed
		}
		if err != nil {
			return
		}
		k := m.key(key)
		w = &waiter{locker: l, key: k, outer: outer, beside: beside, options: o, since: time.Now(), ready: make(chan result, 1), places: make(chan int, 1)}
		k.waiters = append(k.waiters, w)
		m.catchUp()
		switch {
		case !slices.Contains(k.waiters, w):
			return
		case !wait:
			err = k.whyNot(w)
		case outer == nil && l.settings.MaxWaiters > 0 && k.waitersOf(l) > l.settings.MaxWaiters:
			err = holdfast.ErrTooManyWaiters
		}
		if err != nil {
			k.remove(w)
		}
	})
	return w, err
}

func (k *keyState) waitersOf(l *Locker) int {
	return len(slices.DeleteFunc(slices.Clone(k.waiters), func(w *waiter) bool { return w.locker != l || w.outer != nil }))
}

// withdraw ends the wait of a call whose context has ended. A lease that it has got by then goes
// back.
func (m *memory) withdraw(ctx context.Context, w *waiter) (*holdfast.Lease, error) {
	err := error(nil)
	m.do(func() {
		if w.key.remove(w) {
			err = w.key.whyNot(w)
		}
	})
	if err == nil {
		r := <-w.ready
		if r.err != nil {
			return nil, r.err
		}
		_ = r.lease.Unlock(ctx)
		err = holdfast.ErrNotAcquired
	}
	return nil, errs.WithWait(ctx, err)
}
