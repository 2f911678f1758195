package engine

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
)

// One worker undoes, in the background and from one list, what acquires of unknown outcome
// may have left. While Redis hangs, callers that give up and come back must not pile up
// calls: while the list is long, no acquire is sent, and a caller that gives up meanwhile
// has left nothing.

const (
	undoAtOnce = 400 // they share calls
	mostUndone = 256 // length of the list from which on no acquire is sent
)

// undoing is the list of owners to be given up, with its worker.
type undoing struct {
	mu      sync.Mutex
	list    []undone      // guarded by mu
	size    int           // of list, and of what is being undone; guarded by mu
	working bool          // guarded by mu
	room    chan struct{} // closed when there is room again; nil unless a caller waits for it; guarded by mu
}

// undone is an owner to be given up.
type undone struct {
	name, owner string
	until       time.Time // from then on, Redis has nothing of it
	err         error     // of the last attempt
}

// cleanUp undoes an acquire of unknown outcome, in the background, for as long as its
// hold could last: it releases the hold, and leaves a tombstone for a late arrival.
func (h *Engine) cleanUp(name string, o orphan) {
	if o.owner == "" {
		return
	}
	u := &h.undoing
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, undone{name: name, owner: o.owner, until: time.Now().Add(o.lease + h.calls.timeout)})
	u.size++
	if !u.working {
		u.working = true
		h.calls.background(h.undoAll)
	}
}

// undoAll is the worker. After a failure it tries a single owner until Redis answers.
func (h *Engine) undoAll() {
	u, retry, most := &h.undoing, backoff{}, undoAtOnce
	for {
		if h.calls.base.Err() != nil { // each call fails at once now, and is not repeated
			most = undoAtOnce
		}
		list := u.take(most)
		if len(list) == 0 {
			return
		}
		var all sync.WaitGroup
		for i := range list {
			o := &list[i]
			all.Go(func() { o.err = h.undoOne(o.name, o.owner) })
		}
		all.Wait()
		again := h.undoAgain(list)
		u.put(again, len(list)-len(again))
		if len(again) == 0 {
			retry, most = backoff{}, undoAtOnce
			continue
		}
		most = 1
		sleep(retry.next(h.Lease), h.calls.base.Done())
	}
}

func (h *Engine) undoOne(name, owner string) error {
	_, err := redis(h.calls.context(), h.calls, name, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.waits.giveUp(ctx, name, owner)
	})
	return err
}

// undoAgain returns the owners to try again, and reports those that can no longer be undone.
func (h *Engine) undoAgain(list []undone) (again []undone) {
	var left []undone
	for _, o := range list {
		switch outcome := scripts.OutcomeOf(o.err); {
		case outcome == scripts.Done:
		case outcome != scripts.Refused && time.Now().Before(o.until) && h.calls.base.Err() == nil:
			again = append(again, o)
		default:
			h.backend.Lost(o.name, o.owner)
			left = append(left, o)
		}
	}
	if len(left) > 0 {
		h.Log.Warn("holdfast: clean-up failed; the keys free themselves within their leases",
			"keys", len(left), "key", errs.Quote(h.keyOf(left[0].name)), "error", left[0].err)
	}
	return again
}

// take returns the first owners of the list; none if the worker is to end.
func (u *undoing) take(most int) (list []undone) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := min(most, len(u.list))
	list, u.list = u.list[:n:n], u.list[n:]
	if n == 0 {
		u.list, u.working = nil, false
	}
	return list
}

// put puts back the owners to try again; done is the number of the others.
func (u *undoing) put(again []undone, done int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(again, u.list...)
	if u.size -= done; u.size < mostUndone && u.room != nil {
		close(u.room)
		u.room = nil
	}
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
	if u.size >= mostUndone && u.room == nil {
		u.room = make(chan struct{})
	}
	return u.room
}
