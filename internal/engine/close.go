package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Close ends all waits and leases with ErrClosed, releases what is held, gives up all
// places, and waits for the engine's goroutines. A failed call is repeated until the time of two
// calls has passed; a dial of the client may take longer. Then it returns ErrUnknown with the keys
// that may have something left. They free themselves within their leases. Writers close their
// readers at the same time.
func (e *Engine) Close() error {
	if !e.closing.CompareAndSwap(false, true) {
		<-e.ended
		return nil
	}
	defer close(e.ended)
	var readers sync.WaitGroup
	var failed error // of the readers
	if e.readers != nil {
		readers.Go(func() { failed = e.readers.Close() })
	}
	var holds []*Hold
	for i := range e.stripes {
		holds = append(holds, e.stripes[i].close()...)
	}
	close(e.closed)
	e.watchdogs.close()
	e.Calls.Close(func() { e.releaseAll(holds) }, func(ctx context.Context) { e.backend.Drain(ctx, e.MayRemain) })
	readers.Wait()
	if e.writers == nil { // what the halves share
		e.observer.close()
		e.backend.Close()
	}
	return errors.Join(failed, e.remains.error())
}

// close ends the waits and leases of a stripe, and returns the holds to be released.
func (st *stripe) close() (holds []*Hold) {
	st.Lock()
	defer st.Unlock()
	st.closed = true
	for _, k := range st.keys {
		k.Fail(func(*Waiter) error { return holdfast.ErrClosed })
		for h := range k.holds() {
			holds = append(holds, h)
			h.cancel(holdfast.ErrClosed)
			k.remove(h)
		}
		st.engine.discipline.Settle(k)
	}
	return holds
}

// releaseAll releases holds, in lists of their own: what is already being undone may wait
// for an answer.
func (e *Engine) releaseAll(holds []*Hold) {
	byServer := make(map[*watchdog.Watchdog[*Hold]]*undoing)
	for _, h := range holds {
		if byServer[h.watchdog] == nil {
			byServer[h.watchdog] = &undoing{working: true}
		}
		u := byServer[h.watchdog]
		u.list = append(u.list, h.Orphan())
	}
	var all sync.WaitGroup
	for _, u := range byServer {
		all.Go(func() { e.undoAll(u) })
	}
	all.Wait()
}
