package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Close ends all waits and leases with ErrClosed, releases what is held, and waits for
// the engine's goroutines. When Redis does not answer, it takes at most about two call
// time-outs and a dial of the client, and returns ErrUnknown. The keys that it could not
// release free themselves within their leases.
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
	failed := h.releaseAll(holds)
	h.calls.close()
	h.observer.close()
	if failed != nil {
		return fmt.Errorf("holdfast: close: %w: %w", holdfast.ErrUnknown, failed)
	}
	return nil
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

// releaseAtOnce is how many releases of one server Close has under way at a time. They
// share calls: over a link of 50 ms, that is 40 000 releases a second.
const releaseAtOnce = 2000

// releaseAll releases holds within the time of one call. A server that hangs delays none of
// another.
func (h *Engine) releaseAll(holds []*hold) error {
	ctx, cancel := context.WithTimeout(h.calls.base, h.calls.timeout)
	defer cancel()
	byServer := make(map[*watchdog.Watchdog[*hold]][]*hold)
	for _, d := range holds {
		byServer[d.watchdog] = append(byServer[d.watchdog], d)
	}
	var all sync.WaitGroup
	errs := make(chan error, len(holds))
	for _, holds := range byServer {
		all.Go(func() {
			places := make(chan struct{}, releaseAtOnce)
			for _, d := range holds {
				places <- struct{}{}
				all.Go(func() {
					if _, err := h.waits.release(ctx, d, d.fences().used()); err != nil {
						errs <- h.calls.ours(err)
					}
					<-places
				})
			}
		})
	}
	all.Wait()
	if failed := len(errs); failed > 0 {
		return fmt.Errorf("%d of %d holds were not released: %w", failed, len(holds), <-errs)
	}
	return nil
}
