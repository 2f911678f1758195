// Package calls bounds calls to Redis in time, runs those that may hang separately from their
// callers, and delays repeated ones.
package calls

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Calls bounds the calls to Redis in time, and runs on goroutines of their own those that
// must not hold up their caller. Safe for concurrent use.
type Calls struct {
	Bounds
	Block      bool                     // calls may block, whatever their context: each then has a goroutine of its own; set before the calls are used
	PerServer  func(name string) string // names the server of the key of a name; nil: all calls go to one server; set before the calls are used
	stop       context.CancelFunc       // ends Base
	origin     time.Time                // immutable
	server     func() string            // names the server in errors; nil: the backend's errors name it; immutable
	lastAnswer atomic.Int64             // of the one server: when it last answered, since origin; 0: the last call failed
	each       sync.Map                 // of servers by name: *atomic.Int64, as lastAnswer
	work       Tasks                    // calls of users, and of the background under way
}

// New returns the calls of a locker with the given lease. server names its server in
// errors; nil: the backend's errors name it.
func New(lease time.Duration, server func() string) *Calls {
	c := &Calls{origin: time.Now(), server: server}
	c.Base, c.stop = context.WithCancel(context.Background())
	c.Timeout = Timeout(lease)
	return c
}

// Timeout is how long one call to Redis may take (and a quarter more): a third of a
// lease, as a hold that takes longer to come is worth little; at most 5 s, and at least
// 100 ms, or three quarters of the lease if that is less.
func Timeout(lease time.Duration) time.Duration {
	return min(max(lease/3, min(100*time.Millisecond, lease*3/4)), 5*time.Second)
}

// ShareClock makes Now count from the same instant as that of another. Called before the calls are used.
func (c *Calls) ShareClock(with *Calls) { c.origin = with.origin }

// Now is the time since New, on the monotonic clock.
func (c *Calls) Now() time.Duration { return time.Since(c.origin) }

// At is t as a time of Now.
func (c *Calls) At(t time.Time) time.Duration { return t.Sub(c.origin) }

// Time is a time of Now as one that others know, too.
func (c *Calls) Time(now time.Duration) time.Time { return c.origin.Add(now) }

// TryGo runs f in the background with a bounded context. Close waits for it. After Close, TryGo
// does nothing and returns false.
func (c *Calls) TryGo(f func(context.Context)) bool {
	return c.work.TryGo(func() { f(c.Context()) })
}

// Background runs f as work that Close waits for. Its caller is such work, is the
// watchdog, or holds the mutex of a stripe that Close has not reached.
func (c *Calls) Background(f func()) { c.work.Go(f) }

// Begin notes work that Close waits for, until End. Its caller must be one that may call
// Background.
func (c *Calls) Begin() { c.work.Add(1) }

// End ends work of Begin.
func (c *Calls) End() { c.work.Done() }

// CloseTimedOut reports whether the time of Close has run out.
func (c *Calls) CloseTimedOut() bool { return c.Base.Err() != nil }

// ServerOf names the server of the key of a name, if it is known and not the same for all.
func (c *Calls) ServerOf(name string) string {
	if c.PerServer == nil {
		return ""
	}
	return c.PerServer(name)
}

// Close does the last work, waits for all that is under way, and drains what that has left
// behind. It ends all of it after the time of two calls: a call that began before an outage
// ended may use up the first.
func (c *Calls) Close(last func(), drain func(context.Context)) {
	over := time.AfterFunc(2*c.Timeout, c.stop)
	last()
	c.work.Shut()
	drain(c.Base)
	over.Stop()
	c.stop()
}

// Fresh is how long an answer of Redis proves that the connection works.
const Fresh = 50 * time.Millisecond

// Note remembers whether Redis answered a call for the key of a name; "": for several keys.
func (c *Calls) Note(name string, err error) {
	at := int64(0)
	if outcome := wire.OutcomeOf(err); outcome == wire.Done || outcome == wire.Refused {
		at = int64(c.Now())
	}
	if one := c.of(name); one != nil {
		one.Store(at)
	}
}

// of is when the server that has the key of a name last answered, as lastAnswer. It is nil if
// that server is not known.
func (c *Calls) of(name string) *atomic.Int64 {
	switch {
	case c.PerServer == nil:
		return &c.lastAnswer
	case name == "":
		return nil
	}
	server := c.PerServer(name)
	if server == "" {
		return nil
	}
	one, known := c.each.Load(server)
	if !known {
		one, _ = c.each.LoadOrStore(server, new(atomic.Int64))
	}
	return one.(*atomic.Int64)
}

// Answering reports whether the server of the key of a name has just answered. Then a call may
// run on its caller's goroutine, which saves a lock a fifth of its time under load.
func (c *Calls) Answering(name string) bool {
	return !c.Block && c.AnsweredWithin(name, Fresh)
}

// AnsweredWithin reports whether the server of the key of a name answered within d.
func (c *Calls) AnsweredWithin(name string, d time.Duration) bool {
	one := c.of(name)
	if one == nil {
		return false
	}
	last := one.Load()
	return last != 0 && c.Now()-time.Duration(last) < d
}

// RetryUntil repeats a call until it succeeds, can no longer do so, or the time has run
// out. It returns the last error. What Redis refuses, it may allow later.
func (c *Calls) RetryUntil(lease time.Duration, until time.Time, call func(context.Context) error) error {
	var retry loop.Backoff
	for {
		err := call(c.Context())
		if err == nil || wire.Permanent(err) {
			return err
		}
		pause := retry.Within(lease)
		if time.Until(until) < pause || !loop.Sleep(pause, c.Base.Done()) {
			return err
		}
	}
}
