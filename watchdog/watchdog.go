package watchdog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// The reasons for which a lease ends by itself.
var (
	// ErrNotOurs: a renewal was answered [NotOurs].
	ErrNotOurs = errors.New("the lease is no longer ours")
	// ErrDeadline: the trusted deadline passed and no renewal had been confirmed in time.
	ErrDeadline = errors.New("the lease ran out")
	// ErrFixedLease is ErrDeadline of a lease that was not to be renewed.
	ErrFixedLease = fmt.Errorf("%w: it was fixed", ErrDeadline)
	// ErrMaxHold: the longest time for which the lease was allowed has passed.
	ErrMaxHold = errors.New("the longest hold is over")
)

// Answer is what one renewal attempt learnt about one lease.
type Answer uint8

const (
	Unanswered Answer = iota // the lease may or may not have been renewed; the attempt is repeated
	Renewed                  // the lease lasts for Config.Lease from some instant after the start of the attempt
	NotOurs                  // the lease belongs to somebody else or to nobody: it is lost
)

// Watched is a pointer to a type that embeds [Lease].
type Watched interface {
	comparable
	watched() *Lease
}

// Config says how leases are renewed, and which function learns of their end.
type Config[H Watched] struct {
	// Lease is the time that each renewal asks for. A lease is renewed each third of it.
	Lease time.Duration

	// Renew tries once to renew all leases and fills answers, one for each lease and Unanswered at first. It is called on
	// goroutines of the watchdog, up to eight in parallel, but not for a lease whose earlier attempt is within its time
	// limit. ctx ends after Lease/6, or when the watchdog is closed. A call that goes on after that is treated as
	// unanswered and is still one of the eight; what it finds out late still counts. Neither slice may be used after Renew
	// has returned.
	Renew func(ctx context.Context, leases []H, answers []Answer)

	// Ended is told of each lease that ends by itself, once, with ErrNotOurs, ErrDeadline, ErrFixedLease or ErrMaxHold.
	// Alive is false by then. It is called on goroutines of the watchdog and must not block; it may call Forget and Watch,
	// but not Close.
	Ended func(h H, why error)

	batch    int // the most leases in one call of Renew; 0: 100, as outside of tests
	parallel int // the most calls of Renew in parallel; 0: 8
}

// Terms are the terms of one lease.
type Terms struct {
	Anchor  time.Time     // start of the attempt that acquired it, with a monotonic clock reading
	Lease   time.Duration // the time acquired; a renewed lease counts on no more than Config.Lease of it, which renewals set
	Renew   bool          // whether to renew it; otherwise it ends with ErrFixedLease
	MaxHold time.Duration // the longest that it may last, counted from Anchor; 0 for no limit
}

// Margin is how much earlier than the lease the holder stops trusting it: lease/100 + 2 ms, for clocks that
// differ in rate by up to 1 % and for the resolution of expiries.
func Margin(lease time.Duration) time.Duration { return lease/100 + 2*time.Millisecond }

const forever = math.MaxInt64

// Watchdog keeps leases alive and ends them in time. Its methods may be called concurrently; none does I/O, and
// only Close waits.
type Watchdog[H Watched] struct {
	config Config[H] // immutable after New
	origin time.Time // immutable after New; all instants are nanoseconds since then
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the scheduler and the calls; Close waits for them
	wake   chan struct{}  // one slot: the scheduler should look at its queues

	mu      sync.Mutex
	queue   queue[H]   // guarded by mu: every lease, by the earlier of its next attempt, if any, and its trusted deadline, as it was then
	due     []H        // guarded by mu: leases that are due and wait for a call, and some that have ended meanwhile
	calls   []*call[H] // guarded by mu: calls that have not returned, in the order of their start
	called  uint64     // guarded by mu: the number of calls so far
	soon    int64      // guarded by mu: what is due by then is included; 0 once all of it has been looked at
	failed  int        // guarded by mu: calls without an answer since the last one with an answer
	retryAt int64      // guarded by mu: no lease is tried again before then; 0: each at its own time
	alarm   int64      // guarded by mu: when the scheduler next looks by itself
}

// New starts a watchdog with one goroutine, which Close ends. It panics if Renew or Ended is missing, or if Lease is
// not positive.
func New[H Watched](c Config[H]) *Watchdog[H] {
	if c.Lease <= 0 || c.Renew == nil || c.Ended == nil {
		panic("watchdog: Config needs a positive Lease, Renew and Ended")
	}
	c.batch, c.parallel = cmp.Or(c.batch, 100), cmp.Or(c.parallel, 8)
	w := &Watchdog[H]{
		config: c,
		origin: time.Now(),
		wake:   make(chan struct{}, 1),
		alarm:  forever,
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.tasks.Go(w.schedule)
	return w
}

// Watch looks after h from now on: it renews h, if the terms say so, and calls Ended when h ends. h may already have
// ended when Watch returns. A lease is watched once, even after Forget; Watch panics otherwise. On a closed watchdog h
// is not renewed and its end is not reported, but its deadline is set.
func (w *Watchdog[H]) Watch(h H, t Terms) {
	l := h.watched()
	anchor := int64(t.Anchor.Sub(w.origin))
	w.mu.Lock()
	defer w.mu.Unlock()
	if l.origin != nil {
		panic("watchdog: a lease is watched once")
	}
	l.origin, l.fixed = &w.origin, !t.Renew
	l.bound = forever
	if t.MaxHold > 0 {
		l.bound = after(anchor, t.MaxHold)
	}
	lease := t.Lease
	if t.Renew {
		lease = min(lease, w.config.Lease)
	}
	// An instant before the origin has passed: 0 is as good, and over.
	until := max(0, min(l.bound, after(anchor, lease-Margin(lease))))
	l.until.Store(until)
	at := until
	if t.Renew {
		at = after(anchor, lease/3)
	}
	w.queue.set(at, h)
	w.rouse()
}

// Forget stops looking after h, which is being released or given up: its lease has ended. It reports whether the
// lease was alive until now; then Ended is not called for h any more. If not, it had ended before, and Ended has
// been called, is being called, or, where only the clock had ended it, is not called. An attempt in flight goes on,
// and its answer changes nothing. Forgetting again, or a lease that was never watched, does nothing and reports
// false.
func (w *Watchdog[H]) Forget(h H) (alive bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue.remove(h)
	return h.watched().end()
}

// Close stops the watchdog: it cancels the calls in flight and waits until they and the scheduler have returned.
// After that nothing is renewed and Ended is not called; Alive, Deadline and Forget go on to follow the clock.
// Closing again does nothing but wait.
func (w *Watchdog[H]) Close() {
	w.cancel()
	w.tasks.Wait()
}

func (w *Watchdog[H]) now() int64 { return int64(time.Since(w.origin)) }

// after returns the instant d after t, or forever.
func after(t int64, d time.Duration) int64 {
	if d > 0 && t > forever-int64(d) {
		return forever
	}
	return t + int64(d)
}
