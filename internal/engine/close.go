package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// Close ends all waits and leases with ErrClosed, releases what is held, and
// waits for the engine's goroutines. It takes at most about two call time-outs
// when Redis does not answer, and a dial of the client; what could not be released then is told as
// ErrUnknown and frees itself within its lease.
func (h *Engine) Close() (err error) {
	h.closing.Do(func() { err = h.close() })
	return err
}

func (h *Engine) close() error {
	var holds []*hold
	for i := range h.shards {
		holds = append(holds, h.shards[i].close(h)...)
	}
	h.heartbeats.nudge()
	h.watchdog.Close()
	failed := h.releaseAll(holds)
	h.shards[0].mu.Lock()
	h.shut = true
	h.shards[0].mu.Unlock()

	finished := make(chan struct{})
	go func() {
		h.work.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-h.calls.context().Done():
	}
	h.stop()
	<-finished
	if failed != nil {
		return fmt.Errorf("holdfast: close: %w: %w", holdfast.ErrUnknown, failed)
	}
	return nil
}

// close ends what there is in a shard, and returns the holds to be released.
func (s *shard) close(h *Engine) (holds []*hold) {
	var told []signals
	s.mu.Lock()
	s.closed = true
	for _, q := range s.queues {
		q.endAll(func(*waiter) error { return holdfast.ErrClosed })
		q.head.nudge()
		q.line().nudge()
		if d := q.hold; d != nil {
			holds = append(holds, d)
			told = append(told, d.lease.end(holdfast.ErrClosed))
			q.hold = nil
			h.settle(s, q)
		}
	}
	s.mu.Unlock()
	for _, t := range told {
		t.fire(holdfast.ErrClosed)
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
	var (
		next   = make(chan *hold)
		errs   = make(chan error, len(holds))
		worker sync.WaitGroup
	)
	for range min(releaseAtOnce, len(holds)) {
		worker.Go(func() {
			for d := range next {
				if _, err := h.free(ctx, d, d.fences().used()); err != nil {
					errs <- h.ours(err)
				}
			}
		})
	}
	for _, d := range holds {
		next <- d
	}
	close(next)
	worker.Wait()
	select {
	case err := <-errs:
		return fmt.Errorf("%d of %d holds were not released: %w", len(errs)+1, len(holds), err)
	default:
		return nil
	}
}

// Call runs f, which errors call what, as a call that Close waits for, with a context
// that is bounded and ends also with the caller's.
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
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return none, holdfast.ErrClosed
	}
	h.work.Add(1)
	s.mu.Unlock()
	defer h.work.Done()
	ctx, done := h.calls.contextFor(caller)
	defer done()
	value, err := aside(ctx, h, f)
	err = h.ours(err)
	if err != nil && caller.Err() != nil {
		return none, ended(caller, known(err))
	}
	return value, known(err)
}

// Force is Call for an f that frees key, whoever holds it. A lease that this
// client had on key before ends at once when f succeeds.
func (h *Engine) Force(caller context.Context, key string, f func(context.Context) (bool, error)) (bool, error) {
	s := h.shardOf(key)
	s.mu.Lock()
	var d *hold
	if q := s.queues[key]; q != nil {
		d = q.hold
	}
	s.mu.Unlock()
	held, err := Call(caller, h, "force-unlock", key, f)
	if err == nil && d != nil {
		h.lose(d, errForced)
	}
	return held, err
}
