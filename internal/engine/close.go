package engine

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Close ends all waits and leases with ErrClosed, releases what is held, gives up all
// places, and waits for the engine's goroutines. A call that fails is repeated until the
// time of two calls is over; a dial of the client may take longer. Then it returns
// ErrUnknown with the keys of which something may be left. They free themselves within
// their leases.
func (h *Engine) Close() error {
	if !h.closing.CompareAndSwap(false, true) {
		<-h.ended
		return nil
	}
	defer close(h.ended)
	return h.close()
}

func (h *Engine) close() error {
	var holds []*Hold
	for i := range h.shards {
		holds = append(holds, h.shards[i].close()...)
	}
	close(h.closed)
	h.watchdogs.close()
	h.Calls.Close(func() { h.releaseAll(holds) }, func(ctx context.Context) {
		if b, ok := h.backend.(Settles); ok {
			b.Settle(ctx, h.MayRemain)
		}
	})
	h.observer.close()
	return h.remains.error()
}

// close ends the waits and leases of a shard, and returns the holds to be released.
func (s *shard) close() (holds []*Hold) {
	s.Lock()
	defer s.Unlock()
	s.closed = true
	for _, k := range s.keys {
		k.EndAll(func(*Waiter) error { return holdfast.ErrClosed })
		for d := range k.holds() {
			holds = append(holds, d)
			d.end(holdfast.ErrClosed)
			k.forget(d)
		}
		s.engine.waits.Settle(k)
	}
	return holds
}

// releaseAll releases holds, in lists of their own: what is being undone already may wait
// for an answer.
func (h *Engine) releaseAll(holds []*Hold) {
	byServer := make(map[*watchdog.Watchdog[*Hold]]*undoing)
	for _, d := range holds {
		if byServer[d.watchdog] == nil {
			byServer[d.watchdog] = &undoing{working: true}
		}
		u := byServer[d.watchdog]
		u.list = append(u.list, h.toUndo(d))
	}
	var all sync.WaitGroup
	for _, u := range byServer {
		all.Go(func() { h.undoAll(u) })
	}
	all.Wait()
}
