package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Do locks key, runs f with a context that is bound to the lease, and unlocks, also
// when f panics or ends its goroutine.
func (h *Engine) Do(ctx context.Context, key string, f func(context.Context) error, opts ...holdfast.LockOption) (err error) {
	if f == nil {
		return of("lock", key, errors.New("Do: function is nil"))
	}
	lease, err := h.Lock(ctx, key, opts...)
	if err != nil {
		return err
	}
	defer func() {
		if end := lease.Unlock(ctx); end != nil {
			err = errors.Join(err, end)
		}
	}()
	return f(lease.Bind(ctx))
}

// Lock waits until key is held or ctx ends. A ctx bound to a living lease of
// this engine on key re-enters it.
func (h *Engine) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	t, err := h.terms(ctx, key, opts)
	switch {
	case err != nil:
		return nil, of("lock", key, err)
	case t.wait == nil:
		return h.lock(ctx, key, t, true)
	}
	return h.lockFor(ctx, key, *t.wait, t)
}

// TryLock makes one attempt.
func (h *Engine) TryLock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	return h.TryLockFor(ctx, key, 0, opts...)
}

// TryLockFor waits at most the given time.
func (h *Engine) TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	if wait < 0 {
		return nil, of("lock", key, fmt.Errorf("TryLockFor: wait of %v is negative", wait))
	}
	t, err := h.terms(ctx, key, opts)
	if err == nil && t.wait != nil {
		err = errWaits
	}
	if err != nil {
		return nil, of("lock", key, err)
	}
	return h.lockFor(ctx, key, wait, t)
}

// lockFor waits at most the given time; 0 makes one attempt.
func (h *Engine) lockFor(ctx context.Context, key string, wait time.Duration, t Terms) (*holdfast.Lease, error) {
	if wait == 0 {
		return h.lock(ctx, key, t, false)
	}
	limited, cancel := context.WithTimeoutCause(ctx, wait, errWaitOver)
	defer cancel()
	return h.lock(limited, key, t, true)
}

// terms checks what a call is given.
func (h *Engine) terms(ctx context.Context, key string, opts []holdfast.LockOption) (Terms, error) {
	if err := scripts.CheckKey(key); err != nil {
		return Terms{}, err
	}
	t, err := h.termsOf(opts)
	if err == nil && ctx.Err() == nil {
		h.begun.Do(h.warnOfEviction)
	}
	return t, err
}

// warnOfEviction asks, at the first lock and in the background, whether Redis may drop
// locks when it runs out of memory; not if nobody reads the log.
func (h *Engine) warnOfEviction() {
	if h.EvictionPolicy == nil || !h.Log.Enabled(context.Background(), slog.LevelWarn) {
		return
	}
	h.Go(func(ctx context.Context) {
		policy, err := h.EvictionPolicy(ctx)
		if err == nil && policy != "" && policy != "noeviction" {
			h.Log.Warn(h.Kind+": Redis may evict locks that are held; set maxmemory-policy noeviction", "policy", policy)
		}
	})
}

// errWaitOver is the cause of a context that lockFor made: its end is not an
// error of the caller's context.
var errWaitOver = errors.New("wait over")

// endedBy is how a wait ends with its context: what is known, joined with the
// context's error, if it is the caller's.
func endedBy(ctx context.Context, what error) error {
	if context.Cause(ctx) == errWaitOver {
		return what
	}
	return ended(ctx, what)
}

func (h *Engine) lock(ctx context.Context, key string, t Terms, wait bool) (*holdfast.Lease, error) {
	e, err := h.enterLock(ctx, key, t, wait)
	return e.Lease(), of("lock", key, err)
}

func (h *Engine) enterLock(ctx context.Context, key string, t Terms, wait bool) (*Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, doneBefore(ctx)
	}
	if e := h.boundTo(ctx, key); e != nil {
		return h.reenter(ctx, e, t, wait)
	}
	s := h.shardOf(key)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, holdfast.ErrClosed
	}
	q := s.queues[key]
	if q == nil {
		q = &queue{key: key, busy: true, calls: 1}
		s.queues[key] = q
		h.work.Add(1)
		s.mu.Unlock()
		return h.first(ctx, s, q, t, wait)
	}
	if !wait && q.idle() {
		q.calls++
		h.work.Add(1)
		s.mu.Unlock()
		return h.first(ctx, s, q, t, wait)
	}
	if !wait {
		err := q.unmet(nil)
		s.mu.Unlock()
		return nil, err
	}
	if h.full(q) {
		s.mu.Unlock()
		return nil, holdfast.ErrQueueFull
	}
	w := newWaiter(t)
	q.pushBack(w)
	if h.fair != nil {
		h.join(ctx, s, q, w) // gives mu back
	} else {
		s.mu.Unlock()
	}
	return h.await(ctx, s, q, w)
}

// doneBefore is the answer to a context that ended before anything was done.
func doneBefore(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	switch {
	case cause == errWaitOver:
		return holdfast.ErrNotAcquired
	case errors.Is(cause, err):
		return cause
	}
	return failed(err, cause)
}

// first is the attempt of a caller that found nobody before it. It runs on the
// caller's own goroutine, which saves an uncontended lock a fifth of its time.
func (h *Engine) first(ctx context.Context, s *shard, q *queue, t Terms, wait bool) (*Entry, error) {
	defer h.work.Done()
	bounded, done := h.calls.contextFor(ctx)
	a := h.attempt(bounded, q, t, 1)
	done()

	s.mu.Lock()
	q.calls--
	if e := h.take(s, q, a); e != nil {
		h.settle(s, q)
		s.mu.Unlock()
		if ctx.Err() != nil { // it ended while the reply came in: the caller may be gone
			h.giveBack(e.Lease())
			return nil, endedBy(ctx, holdfast.ErrNotAcquired)
		}
		return e, nil
	}
	var err error
	switch {
	case ctx.Err() != nil:
		err = endedBy(ctx, a.known())
	case s.closed:
		err = holdfast.ErrClosed
	case !wait, !a.passing(), a.err != nil && h.MaxOutage == 0:
		err = a.known()
	case h.full(q):
		err = holdfast.ErrQueueFull
	default:
		w := newWaiter(t)
		w.since = a.start
		q.pushFront(w)
		if h.fair == nil {
			p := q.meet()
			p.outage = p.outage.note(a)
			p.contended, p.orphan = a.err == nil, a.orphan
		} else {
			h.lineUp(s, q, w, a)
		}
		h.settle(s, q)
		s.mu.Unlock()
		return h.await(ctx, s, q, w)
	}
	h.settle(s, q)
	s.mu.Unlock()
	h.cleanUp(q.key, a.orphan)
	return nil, err
}

// await is the whole of what a waiter does: it neither calls Redis nor owns a
// goroutine, and its frame is small, since what a waiting goroutine has on its
// stack costs more than the waiter itself.
func (h *Engine) await(ctx context.Context, s *shard, q *queue, w *waiter) (*Entry, error) {
	select {
	case g := <-w.ready:
		h.tellLongWait(q, w)
		if g.confirm != nil {
			return h.confirm(ctx, s, q, w, g.confirm)
		}
		w.free()
		return g.entry, g.err
	case <-ctx.Done():
		h.tellLongWait(q, w)
		return h.withdraw(ctx, s, q, w)
	}
}

// tellLongWait logs a wait that took longer than a lease.
func (h *Engine) tellLongWait(q *queue, w *waiter) {
	if !h.Log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	if d := time.Since(w.since); d > h.Lease {
		h.Log.Debug("holdfast: waited for longer than a lease", "key", quote(q.key), "waited", d)
	}
}

// withdraw takes a waiter whose context ended out of the queue; what was
// granted to it meanwhile is passed on.
func (h *Engine) withdraw(ctx context.Context, s *shard, q *queue, w *waiter) (*Entry, error) {
	s.mu.Lock()
	if w.queued {
		q.remove(w)
		err := q.unmet(w)
		q.retire(w)
		if q.first == nil {
			q.head.nudge()
		}
		s.mu.Unlock()
		w.free()
		return nil, endedBy(ctx, err)
	}
	s.mu.Unlock()
	g := <-w.ready
	w.free()
	if g.err != nil {
		return nil, g.err
	}
	if g.confirm != nil {
		h.decline(s, q, g.confirm)
		return nil, endedBy(ctx, holdfast.ErrNotAcquired)
	}
	h.giveBack(g.entry.Lease())
	return nil, endedBy(ctx, holdfast.ErrNotAcquired)
}

// giveBack releases an entry whose caller has gone. The caller does not wait.
func (h *Engine) giveBack(l *holdfast.Lease) {
	s := h.shardOf(l.Key())
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed { // else Close releases it
		h.background(func() { _ = l.Unlock(context.Background()) })
	}
}

// attempt is one call for a hold by a fresh owner, and what came of it.
type attempt struct {
	start     time.Time
	hold      *hold         // set if it was acquired in time
	remaining time.Duration // of another's lease, if held by another
	split     bool          // perhaps held by nobody: several asked at once
	unmet     error         // what the backend says of that, matching ErrNotAcquired; nil: nothing
	err       error         // why there was no answer
	orphan    orphan        // what it may have left in Redis
}

// orphan is a hold that nobody has but that Redis may know of, or come to know.
type orphan struct {
	owner string // "": none
	lease time.Duration
}

// passing says whether waiting may bring what this attempt did not.
func (a attempt) passing() bool {
	return a.err == nil || scripts.OutcomeOf(a.err) != scripts.Refused
}

// known is the error of an attempt that did not acquire.
func (a attempt) known() error {
	switch {
	case a.err != nil:
		return known(a.err)
	case a.unmet != nil:
		return a.unmet
	}
	return holdfast.ErrNotAcquired
}

// attempt makes one attempt. One of unknown outcome, and one whose reply came too
// late to be trusted, leaves an orphan, which the caller has to undo.
func (h *Engine) attempt(ctx context.Context, q *queue, t Terms, numbers int64) attempt {
	owner, start := h.newOwner(), time.Now()
	said, err := h.acquire(ctx, q.key, owner, t.Lease, numbers)
	return h.judge(q, owner, t, start, said, err)
}

// judge is what came of a call for a hold that began at start.
func (h *Engine) judge(q *queue, owner string, t Terms, start time.Time, said scripts.Acquired, err error) attempt {
	if seed.TrustFromReply {
		start = time.Now()
	}
	a := attempt{start: start}
	err = h.ours(err)
	h.note(err)
	switch scripts.OutcomeOf(err) {
	case scripts.Done:
	case scripts.Unknown:
		a.orphan = orphan{owner, t.Lease}
		fallthrough
	default:
		a.err = err
		return a
	}
	took := time.Since(a.start)
	h.trips.add(took)
	switch {
	case said.Gone:
	case !said.OK:
		a.remaining, a.split, a.unmet = said.Remaining, said.Split, said.Why
	case took < t.Lease-watchdog.Margin(t.Lease):
		a.hold = h.newHold(q, owner, t, a.start, said)
	default:
		a.err = errTooLate
		a.orphan = orphan{owner, t.Lease}
	}
	return a
}

func (h *Engine) acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error) {
	if h.answering() { // as aside, but without its closure
		return h.backend.Acquire(ctx, key, owner, lease, numbers)
	}
	if !h.undoing.admit(ctx) {
		return scripts.Acquired{}, errHeldBack
	}
	return aside(ctx, h, func(ctx context.Context) (scripts.Acquired, error) {
		return h.backend.Acquire(ctx, key, owner, lease, numbers)
	})
}

// take makes the hold of an attempt the queue's own, under mu, and begins its
// first lease. It returns nil if there is no hold, or if it ended meanwhile.
func (h *Engine) take(s *shard, q *queue, a attempt) *Entry {
	if a.hold == nil {
		return nil
	}
	if a.hold.over {
		h.reportLost(a.hold)
		return nil
	}
	// On a fair lock another may have been granted the key here while the reply was
	// on its way: then this hold is over.
	if s.closed || q.hold != nil {
		h.undo(a.hold)
		return nil
	}
	q.hold = a.hold
	return a.hold.newLease()
}
