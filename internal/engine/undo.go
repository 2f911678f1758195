package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
)

// What no caller wants any more is undone in the background: holds that have ended without a
// release, and what acquires of unknown outcome may have left. One worker for each server
// does so from one list, as a server that hangs must hold up no other. After an outage, a
// list may have all holds of a locker: the worker tries one of them until Redis answers, and
// then many at once. What a server refuses to undo goes to a second list of it, where it holds
// up nothing else: it may be allowed before a lease is over.
//
// While Redis hangs, callers that give up and come back must not pile up calls: while the
// list has many acquires, no acquire is sent, and a caller that gives up meanwhile has left
// nothing.

const (
	// undoAtOnce is how many calls of one list are under way at a time. They share calls to
	// Redis: over a link of 50 ms, that is 40 000 releases a second.
	undoAtOnce = 2000
	mostUndone = 256 // acquires in the list from which on no acquire is sent
)

// errHeldBack says why an acquire was not sent.
var errHeldBack = heldBack{errors.New("redis does not answer, and too many attempts wait to be undone")}

type heldBack struct{ error }

func (heldBack) Outcome() scripts.Outcome { return scripts.Unavailable }

// undoing is a list of what is to be undone on one server, with its worker.
type undoing struct {
	refused  bool // that server refused all in the list; immutable
	mu       sync.Mutex
	list     []undone      // guarded by mu
	acquires int           // of the list, and of those being undone; guarded by mu
	working  bool          // guarded by mu
	room     chan struct{} // closed when there is room again; nil unless a caller waits for it; guarded by mu
}

// undone is an owner that is to have nothing in Redis any more.
type undone struct {
	name, owner string
	hold        *Hold     // that has ended; nil: an acquire of unknown outcome
	until       time.Time // from then on, Redis has nothing of it
	err         error     // of the last attempt
}

// undoingOf is the undoing of the server that has the key of a name, or that of what it has
// refused.
func (h *Engine) undoingOf(name string, refused bool) *undoing {
	of := struct {
		server  string
		refused bool
	}{h.Calls.ServerOf(name), refused}
	u, known := h.undoings.Load(of)
	if !known {
		u, _ = h.undoings.LoadOrStore(of, &undoing{refused: refused})
	}
	return u.(*undoing)
}

// CleanUp undoes an acquire of unknown outcome, in the background, for as long as its
// hold could last: it releases the hold, and leaves a tombstone for a late arrival.
func (h *Engine) CleanUp(name string, o Orphan) {
	if o.Owner != "" {
		h.undoLater(undone{name: name, owner: o.Owner, until: time.Now().Add(o.Lease + h.Calls.Timeout)}, false)
	}
}

// Undo releases, in the background, a hold that no caller has any more. It tries for as
// long as the hold could last, if a late renewal has just arrived.
func (h *Engine) Undo(d *Hold) {
	d.watchdog.Forget(d)
	h.undoLater(h.toUndo(d), false)
}

// UndoNow makes one attempt to undo an acquire of unknown outcome.
func (h *Engine) UndoNow(name string, o Orphan) error {
	return h.undoOne(undone{name: name, owner: o.Owner})
}

// UndoRefused is CleanUp of an owner whom Redis has refused to give up, until that time.
func (h *Engine) UndoRefused(name, owner string, until time.Time) {
	h.undoLater(undone{name: name, owner: owner, until: until}, true)
}

func (h *Engine) toUndo(d *Hold) undone {
	return undone{name: d.Key.Name, owner: d.Owner, hold: d, until: h.until(d).Add(h.Calls.Timeout)}
}

func (h *Engine) undoLater(o undone, refused bool) {
	u := h.undoingOf(o.name, refused)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, o)
	if o.hold == nil {
		u.acquires++
	}
	if !u.working {
		u.working = true
		h.Calls.Background(func() { h.undoAll(u) })
	}
}

// undoAll is the worker. At first and after a failure it tries a single owner until Redis
// answers.
func (h *Engine) undoAll(u *undoing) {
	retry, most := calls.Backoff{}, 1
	for {
		list, late := u.take(most, h.Calls.Over())
		h.abandon(late)
		if len(list) == 0 {
			if u.stop() {
				return
			}
			continue
		}
		var all sync.WaitGroup
		for i := range list {
			o := &list[i]
			all.Go(func() { o.err = h.undoOne(*o) })
		}
		all.Wait()
		again := h.undoAgain(u, list)
		u.put(list, again)
		if len(again) == 0 {
			retry, most = calls.Backoff{}, undoAtOnce
			continue
		}
		most = 1
		calls.Sleep(retry.Next(h.Lease), h.Calls.Base.Done())
	}
}

func (h *Engine) undoOne(o undone) error {
	_, err := calls.Redis(h.Calls.Context(), h.Calls, o.name, func(ctx context.Context) (struct{}, error) {
		if o.hold == nil {
			return struct{}{}, h.waits.GiveUp(ctx, o.name, o.owner)
		}
		_, err := h.waits.Release(ctx, o.hold, o.hold.fences().used())
		return struct{}{}, err
	})
	return err
}

// undoAgain returns the owners of u to try again. It abandons those that can no longer be
// undone, and puts aside those that Redis refuses.
func (h *Engine) undoAgain(u *undoing, list []undone) (again []undone) {
	var final []undone
	for _, o := range list {
		switch {
		case scripts.OutcomeOf(o.err) == scripts.Done:
		case scripts.Permanent(o.err):
			final = append(final, o)
		case scripts.OutcomeOf(o.err).Final() && !u.refused:
			h.undoLater(o, true)
		default:
			again = append(again, o)
		}
	}
	h.abandon(final)
	return again
}

// abandon reports owners that can no longer be undone.
func (h *Engine) abandon(list []undone) {
	if len(list) == 0 {
		return
	}
	for i := range list {
		o := &list[i]
		if o.err == nil { // Close is over
			o.err = h.Calls.Ours(calls.ErrNoAnswer)
		}
		h.backend.Lost(o.name, o.owner)
		if time.Now().Before(o.until) {
			h.MayRemain(o.name, o.err)
		}
	}
	h.Logger.Warn("holdfast: clean-up failed; the keys free themselves within their leases",
		"keys", len(list), "key", errs.Quote(h.KeyOf(list[0].name)), "error", list[0].err)
}

// take returns the first owners of the list, and those for which it is too late; if all is
// over, that is all of them.
func (u *undoing) take(most int, over bool) (list, late []undone) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, left := time.Now(), u.list[:0]
	for _, o := range u.list {
		switch {
		case over || o.err != nil && now.After(o.until):
			late = append(late, o)
		case len(list) < most:
			list = append(list, o)
		default:
			left = append(left, o)
		}
	}
	clear(u.list[len(left):])
	u.list = left
	u.done(acquires(late))
	return list, late
}

// put takes back, of the owners that have been tried, those to be tried again. They come
// last: one that fails by itself must not hold up the others.
func (u *undoing) put(tried, again []undone) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, again...)
	u.done(acquires(tried) - acquires(again))
}

// done counts out acquires that are no longer to be undone, under mu.
func (u *undoing) done(acquires int) {
	if u.acquires -= acquires; u.acquires < mostUndone && u.room != nil {
		close(u.room)
		u.room = nil
	}
}

func acquires(list []undone) (n int) {
	for _, o := range list {
		if o.hold == nil {
			n++
		}
	}
	return n
}

// stop ends the worker if the list is empty.
func (u *undoing) stop() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.list) == 0 {
		u.list, u.working = nil, false
	}
	return !u.working
}

// admit waits until an acquire may be sent; false if ctx ends before.
func (u *undoing) admit(ctx context.Context) bool {
	for room := u.full(); room != nil; room = u.full() {
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// full returns nil, or while the list is long a channel that is closed when it is no longer.
func (u *undoing) full() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.acquires >= mostUndone && u.room == nil {
		u.room = make(chan struct{})
	}
	return u.room
}

// until is how long a hold without further renewals may last in Redis: a lease from the
// last one.
func (h *Engine) until(d *Hold) time.Time {
	return calls.Later(time.Now().Add(h.Lease), d.Deadline()) // later with a longer fixed lease
}
