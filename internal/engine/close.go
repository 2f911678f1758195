package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
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
	var holds []*hold
	for i := range h.shards {
		holds = append(holds, h.shards[i].close()...)
	}
	close(h.closed)
	h.watchdogs.close()
	h.calls.Close(func() { h.releaseAll(holds) }, func(ctx context.Context) {
		if b, ok := h.backend.(Settles); ok {
			b.Settle(ctx, h.mayRemain)
		}
	})
	h.observer.close()
	return h.remains.error()
}

// close ends the waits and leases of a shard, and returns the holds to be released.
func (s *shard) close() (holds []*hold) {
	s.Lock()
	defer s.Unlock()
	s.closed = true
	for _, k := range s.keys {
		k.endAll(func(*waiter) error { return holdfast.ErrClosed })
		if d := k.hold; d != nil {
			holds = append(holds, d)
			d.section.end(holdfast.ErrClosed)
			k.hold = nil
		}
		s.engine.waits.settle(k)
	}
	return holds
}

// releaseAll releases holds, in lists of their own: what is being undone already may wait
// for an answer.
func (h *Engine) releaseAll(holds []*hold) {
	byServer := make(map[*watchdog.Watchdog[*hold]]*undoing)
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

// remains are the keys of which something may be left in Redis after Close.
type remains struct {
	mu   sync.Mutex
	keys map[string]struct{} // quoted; guarded by mu
	err  error               // of the first; guarded by mu
}

// mayRemain notes, once the engine is closed, that something of a name may be left.
func (h *Engine) mayRemain(name string, err error) {
	select {
	case <-h.closed:
	default:
		return
	}
	r := &h.remains
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys, r.err = make(map[string]struct{}), err
	}
	r.keys[errs.Quote(h.keyOf(name))] = struct{}{}
}

const mostNamed = 10 // keys in an error of Close

func (r *remains) error() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.keys) == 0 {
		return nil
	}
	keys := slices.Sorted(maps.Keys(r.keys))
	named := strings.Join(keys[:min(len(keys), mostNamed)], ", ")
	if more := len(keys) - mostNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("holdfast: close: %w: not surely released: %s: %w", holdfast.ErrUnknown, named, r.err)
}
