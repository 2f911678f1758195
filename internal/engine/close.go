package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// Close ends all waits and leases with ErrClosed, releases what is held, and waits for
// the engine's goroutines. When Redis does not answer it takes at most about two call
// time-outs and a dial of the client. It reports as ErrUnknown what could not be released
// then, which frees itself within its lease.
func (h *Engine) Close() (err error) {
	h.closing.Do(func() { err = h.close() })
	return err
}

func (h *Engine) close() error {
	var holds []*hold
	for i := range h.shards {
		holds = append(holds, h.shards[i].close()...)
	}
	close(h.closed)
	h.watchdog.Close()
	failed := h.releaseAll(holds)
	h.calls.close()
	if failed != nil {
		return fmt.Errorf("holdfast: close: %w: %w", holdfast.ErrUnknown, failed)
	}
	return nil
}

// close ends what there is in a shard, and returns the holds to be released.
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

// releaseAtOnce is how many releases of Close are under way at a time. They share
// calls: on a link of 50 ms that is 40 000 a second.
const releaseAtOnce = 2000

// releaseAll releases many holds, some at a time, within the time of one call.
func (h *Engine) releaseAll(holds []*hold) error {
	ctx, cancel := context.WithTimeout(h.calls.base, h.calls.timeout)
	defer cancel()
	var all sync.WaitGroup
	places, errs := make(chan struct{}, releaseAtOnce), make(chan error, len(holds))
	for _, d := range holds {
		places <- struct{}{}
		all.Go(func() {
			if _, err := h.waits.release(ctx, d, d.fences().used()); err != nil {
				errs <- h.calls.ours(err)
			}
			<-places
		})
	}
	all.Wait()
	if failed := len(errs); failed > 0 {
		return fmt.Errorf("%d of %d holds were not released: %w", failed, len(holds), <-errs)
	}
	return nil
}

// Call runs f, which errors call what, as a call that Close waits for, with a context that
// is bounded and also ends with the caller's.
func Call[T any](caller context.Context, h *Engine, what, key string, f func(context.Context) (T, error)) (T, error) {
	value, err := call(caller, h, key, f)
	return value, of(what, key, err)
}

func call[T any](caller context.Context, h *Engine, key string, f func(context.Context) (T, error)) (T, error) {
	var none T
	if err := scripts.CheckKey(key); err != nil {
		return none, err
	}
	if caller.Err() != nil {
		return none, doneBefore(caller)
	}
	s := h.shardOf(key)
	s.Lock()
	if s.closed {
		s.Unlock()
		return none, holdfast.ErrClosed
	}
	h.calls.work.Add(1)
	s.Unlock()
	defer h.calls.work.Done()
	ctx, done := h.calls.contextFor(caller)
	defer done()
	value, err := detached(ctx, h.calls, f)
	err = known(h.calls.ours(err))
	if err != nil && caller.Err() != nil {
		return none, ended(caller, err)
	}
	return value, err
}

// Force is Call for an f that frees key, whoever holds it. A lease that this locker had
// on key before ends at once when f succeeds.
func (h *Engine) Force(caller context.Context, key string, f func(context.Context) (bool, error)) (bool, error) {
	s := h.shardOf(key)
	s.Lock()
	var d *hold
	if k := s.keys[key]; k != nil {
		d = k.hold
	}
	s.Unlock()
	held, err := Call(caller, h, "force-unlock", key, f)
	if err == nil && d != nil {
		h.lose(d, errForced)
	}
	return held, err
}
