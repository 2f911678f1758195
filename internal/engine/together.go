package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// Several keys at once: where nobody here wants or has any of them, one call takes
// them all, or none.

// Together is a [Plain] that can take several keys in one call.
type Together interface {
	AcquireAll(ctx context.Context, keys, owners []string, lease time.Duration) (ok bool, err error)
}

// Quick returns the engine of a Locker whose keys [Engine.TryLockAll] may take; nil of any
// other Locker, also of one that has such a Locker in it: the calls of its own are wanted.
// Package rlock sets it.
var Quick = func(holdfast.Locker) *Engine { return nil }

// TryLockAll makes one attempt to take keys, which are different, with one call. It fails
// with ErrNotAcquired, also without a call: where it cannot be made so, or ctx is bound to
// one of the keys. Then they are to be taken one by one.
func (h *Engine) TryLockAll(ctx context.Context, keys []string, opts []holdfast.LockOption) ([]*holdfast.Lease, error) {
	t := Terms{}
	for _, key := range keys {
		var err error
		if t, err = h.terms(ctx, key, opts); err != nil {
			return nil, of("lock", key, err)
		}
	}
	backend, can := h.backend.(Together)
	if !can || h.Fencing {
		return nil, holdfast.ErrNotAcquired
	}
	if ctx.Err() != nil {
		return nil, doneBefore(ctx)
	}
	queues := make([]*queue, 0, len(keys))
	defer func() {
		for _, q := range queues {
			h.leaveTogether(q)
		}
	}()
	for _, key := range keys {
		q, err := h.openAlone(ctx, key)
		if err != nil {
			return nil, of("lock", key, err)
		}
		queues = append(queues, q)
	}
	bounded, done := h.calls.contextFor(ctx)
	defer done()
	owners, attempts := make([]string, len(keys)), make([]attempt, len(keys))
	for i := range owners {
		owners[i] = h.newOwner()
	}
	start := time.Now()
	ok, err := false, error(errHeldBack)
	if h.undoing.admit(bounded) {
		ok, err = aside(bounded, h, func(ctx context.Context) (bool, error) {
			return backend.AcquireAll(ctx, keys, owners, t.Lease)
		})
	}
	for i, q := range queues {
		said := scripts.Acquired{OK: ok}
		attempts[i] = h.judge(q, owners[i], t, start, said, err)
	}
	return h.takeTogether(ctx, queues, attempts)
}

// openAlone makes the queue of a key that nobody here has or wants.
func (h *Engine) openAlone(ctx context.Context, key string) (*queue, error) {
	if h.boundTo(ctx, key) != nil {
		return nil, holdfast.ErrNotAcquired
	}
	s := h.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, holdfast.ErrClosed
	case s.queues[key] != nil:
		return nil, holdfast.ErrNotAcquired
	}
	q := &queue{key: key, busy: true, calls: 1}
	s.queues[key] = q
	h.work.Add(1)
	return q, nil
}

// leaveTogether ends what openAlone began.
func (h *Engine) leaveTogether(q *queue) {
	defer h.work.Done()
	s := h.shardOf(q.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	q.calls--
	h.settle(s, q)
}

// takeTogether begins the leases of all attempts, or gives up what one of them may
// have left.
func (h *Engine) takeTogether(ctx context.Context, queues []*queue, attempts []attempt) ([]*holdfast.Lease, error) {
	leases := make([]*holdfast.Lease, 0, len(queues))
	var err error
	for i, q := range queues {
		s := h.shardOf(q.key)
		s.mu.Lock()
		if e := h.take(s, q, attempts[i]); e != nil {
			leases = append(leases, e.Lease())
		} else if err == nil {
			err = of("lock", q.key, attempts[i].known())
		}
		s.mu.Unlock()
		h.cleanUp(q.key, attempts[i].orphan)
	}
	if err == nil && ctx.Err() != nil {
		err = endedBy(ctx, holdfast.ErrNotAcquired)
	}
	if err == nil {
		return leases, nil
	}
	for _, l := range leases {
		h.giveBack(l)
	}
	return nil, err
}
