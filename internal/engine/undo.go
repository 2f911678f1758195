package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// The engine undoes in the background what no caller wants any more: holds that have ended without
// a release, and acquires of unknown outcome. Each server has a list and a worker, as a server that
// hangs must not delay another. After an outage, a list may have all holds of a locker: the worker
// tries one of them until Redis answers, and then many in parallel. What a server refuses to undo
// goes to its second list and delays nothing else. The server may allow it before the lease ends.
//
// Callers that give up and come back while Redis hangs must not pile up calls. So no acquire is
// sent while the list has many acquires, and a caller that gives up meanwhile has left nothing.

const (
	// undoAtOnce is how many calls of one list are under way at a time: over a link of 50 ms,
	// 40 000 a second. On one Redis and on a quorum, they go out as batches. On a Redis Cluster,
	// and with WithReplicas, each goes out alone.
	undoAtOnce = 2000
	maxUndone  = 256 // acquires in the list from which on no acquire is sent
)

// errHeldBack says why an acquire was not sent.
var errHeldBack = wire.Judge(errors.New("redis does not answer, and too many attempts wait to be undone"), wire.Unavailable)

// undoing is a list of what is to be undone on one server, with its worker.
type undoing struct {
	refused  bool // that server refused all in the list; immutable
	mu       sync.Mutex
	list     []*Orphan     // guarded by mu
	acquires int           // of the list, and of those being undone; guarded by mu
	working  bool          // guarded by mu
	room     chan struct{} // closed when there is room again; nil unless a caller waits for it; guarded by mu
}

// Orphan is an owner that no caller has but that Redis may know, or come to know: from an acquire
// of unknown outcome, or from a hold that has ended.
type Orphan struct {
	Name, Owner string
	Lease       time.Duration // that an acquire asked for
	Err         error         // of the last attempt to undo it
	hold        *Hold         // that has ended; nil: an acquire
	until       time.Time     // from then on, Redis has nothing of it
}

// Orphan is h once no caller has it any more. A late renewal may have just arrived.
func (h *Hold) Orphan() *Orphan {
	e := h.Key.engine
	return &Orphan{Name: h.Key.Name, Owner: h.Owner, hold: h, until: e.until(h).Add(e.Calls.Timeout)}
}

// until is how long a hold without further renewals may last in Redis: a lease from the
// last one.
func (e *Engine) until(h *Hold) time.Time {
	return time.Now().Add(max(e.Lease, time.Until(h.Deadline()))) // that of a fixed lease may be later
}

// undoingOf is the undoing of the server that has the key of a name, or that of what it has
// refused.
func (e *Engine) undoingOf(name string, refused bool) *undoing {
	of := struct {
		server  string
		refused bool
	}{e.Calls.ServerOf(name), refused}
	u, known := e.undoings.Load(of)
	if !known {
		u, _ = e.undoings.LoadOrStore(of, &undoing{refused: refused})
	}
	return u.(*undoing)
}

// Undo makes sure, in the background, that Redis has nothing of o, which may be nil. It tries for
// as long as o could last.
func (e *Engine) Undo(o *Orphan) {
	if o == nil {
		return
	}
	if o.hold != nil {
		o.hold.watchdog.Forget(o.hold)
	} else if o.until.IsZero() {
		o.until = time.Now().Add(o.Lease + e.Calls.Timeout)
	}
	u := e.undoingOf(o.Name, wire.OutcomeOf(o.Err).Final())
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, o)
	if o.hold == nil {
		u.acquires++
	}
	if !u.working {
		u.working = true
		e.Calls.Background(func() { e.undoAll(u) })
	}
}

// undoAll is the worker. At first and after a failure it tries a single owner until Redis
// answers.
func (e *Engine) undoAll(u *undoing) {
	retry, most := loop.Backoff{}, 1
	for {
		list, late := u.pick(most, e.Calls.CloseTimedOut())
		e.abandon(late)
		if len(list) == 0 {
			return
		}
		var all sync.WaitGroup
		for _, o := range list {
			all.Go(func() { o.Err = e.UndoOnce(o) })
		}
		all.Wait()
		again := e.undoAgain(u, list)
		u.putBack(list, again)
		if len(again) == 0 {
			retry, most = loop.Backoff{}, undoAtOnce
			continue
		}
		most = 1
		loop.Sleep(retry.Within(e.Lease), e.Calls.Base.Done())
	}
}

// UndoOnce makes one attempt to undo o.
func (e *Engine) UndoOnce(o *Orphan) error {
	_, err := calls.Detached(e.Calls.Context(), e.Calls, o.Name, func(ctx context.Context) (wire.ReleaseReply, error) {
		if o.hold == nil {
			return wire.ReleaseReply{}, e.discipline.GiveUp(ctx, o.Name, o.Owner)
		}
		return e.discipline.Release(ctx, o.hold, o.hold.fences().used())
	})
	err = e.Calls.Public(err)
	e.Calls.Note(o.Name, err) // the observer must not take it for an answer: a quorum gives up a hold before its nodes answer
	return err
}

// undoAgain returns the owners of u to try again. It abandons those that can no longer be
// undone, and sets aside those that Redis refuses.
func (e *Engine) undoAgain(u *undoing, list []*Orphan) (again []*Orphan) {
	var permanent []*Orphan
	for _, o := range list {
		switch {
		case wire.OutcomeOf(o.Err) == wire.Done:
		case wire.Permanent(o.Err):
			permanent = append(permanent, o)
		case wire.OutcomeOf(o.Err).Final() && !u.refused:
			e.Undo(o)
		default:
			again = append(again, o)
		}
	}
	e.abandon(permanent)
	return again
}

// abandon reports owners that can no longer be undone.
func (e *Engine) abandon(list []*Orphan) {
	if len(list) == 0 {
		return
	}
	for _, o := range list {
		if o.Err == nil { // Close has ended
			o.Err = e.Calls.Public(calls.ErrNoAnswer)
		}
		e.backend.Abandoned(o.Owner)
		if time.Now().Before(o.until) {
			e.MayRemain(o.Name, o.Err)
		}
	}
	e.Logger.Warn("holdfast: undo failed; the keys free themselves within their leases",
		"keys", len(list), "key", errs.Quote(e.KeyOf(list[0].Name)), "error", list[0].Err)
}

// pick removes and returns the first owners of the list, and those for which it is too late. With over,
// it is too late for all. If it returns none of the first, nothing is left, and the worker must end: the next
// Undo starts another.
func (u *undoing) pick(most int, over bool) (list, late []*Orphan) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, left := time.Now(), u.list[:0]
	for _, o := range u.list {
		switch {
		case over || o.Err != nil && now.After(o.until):
			late = append(late, o)
		case len(list) < most:
			list = append(list, o)
		default:
			left = append(left, o)
		}
	}
	clear(u.list[len(left):])
	u.list = left
	u.makeRoom(acquires(late))
	if len(list) == 0 { // nothing is left: the worker ends
		u.list, u.working = nil, false
	}
	return list, late
}

// putBack takes back, of the owners that have been tried, those to be tried again. They come
// last: one that fails by itself must not hold up the others.
func (u *undoing) putBack(tried, again []*Orphan) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, again...)
	u.makeRoom(acquires(tried) - acquires(again))
}

// makeRoom counts out acquires that are no longer to be undone, under mu.
func (u *undoing) makeRoom(acquires int) {
	if u.acquires -= acquires; u.acquires < maxUndone && u.room != nil {
		close(u.room)
		u.room = nil
	}
}

func acquires(list []*Orphan) (n int) {
	for _, o := range list {
		if o.hold == nil {
			n++
		}
	}
	return n
}

// awaitRoom waits until an acquire may be sent; false if ctx ends before.
func (u *undoing) awaitRoom(ctx context.Context) bool {
	for room := u.untilRoom(); room != nil; room = u.untilRoom() {
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// untilRoom returns nil, or while the list is full a channel that is closed when it no longer is.
func (u *undoing) untilRoom() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.acquires >= maxUndone && u.room == nil {
		u.room = make(chan struct{})
	}
	return u.room
}
