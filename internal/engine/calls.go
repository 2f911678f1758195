package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/scripts"
)

// Calls bounds the calls to Redis in time, and runs on goroutines of their own those that
// must not hold up their caller. Safe for concurrent use.
type Calls struct {
	bounds
	stop     context.CancelFunc       // ends base
	epoch    time.Time                // immutable
	server   func() string            // names the server in errors; nil: the backend's errors name it; immutable
	serverOf func(name string) string // see PerServer; immutable
	answered atomic.Int64             // of the one server: when it last answered, since epoch; 0: the last call failed
	each     sync.Map                 // of servers by name: *atomic.Int64, as answered
	block    bool                     // see Block; immutable
	work     sync.WaitGroup           // calls of users, loops and clean-ups under way
	mu       sync.Mutex
	shut     bool // Go does nothing any more; guarded by mu
}

// NewCalls returns the calls of a locker with the given lease. server names its server in
// errors; nil: the backend's errors name it.
func NewCalls(lease time.Duration, server func() string) *Calls {
	c := &Calls{epoch: time.Now(), server: server}
	c.base, c.stop = context.WithCancel(context.Background())
	c.timeout = callTimeout(lease)
	return c
}

// Block says that calls may block, whatever their context: each then has a goroutine of its
// own. Called before the calls are used.
func (c *Calls) Block() { c.block = true }

// PerServer says that calls go to several servers, and to which those for the key of a name.
// Called before the calls are used.
func (c *Calls) PerServer(of func(name string) string) { c.serverOf = of }

// callTimeout is how long one call to Redis may take (and a quarter more): a third of a
// lease, as a hold that takes longer to come is worth little, and at most 5 s; but 100 ms
// where the lease allows it.
func callTimeout(lease time.Duration) time.Duration {
	return min(max(lease/3, min(100*time.Millisecond, lease*3/4)), 5*time.Second)
}

// now is the time since NewCalls, on the monotonic clock.
func (c *Calls) now() time.Duration { return time.Since(c.epoch) }

// Go runs f in the background with a bounded context. Close waits for it. After Close, Go
// does nothing and returns false.
func (c *Calls) Go(f func(context.Context)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shut {
		c.background(func() { f(c.context()) })
	}
	return !c.shut
}

// background runs f as work that Close waits for. Its caller is such work, is the
// watchdog, or has locked a shard that Close has not reached.
func (c *Calls) background(f func()) { c.work.Go(f) }

// close does the last work, waits for all that is under way, and settles what that has left
// behind. It ends all of it after the time of two calls: one that began before an outage was
// over may take up the first.
func (c *Calls) close(last func(), settle func(context.Context)) {
	over := time.AfterFunc(2*c.timeout, c.stop)
	last()
	c.mu.Lock()
	c.shut = true
	c.mu.Unlock()
	c.work.Wait()
	settle(c.base)
	over.Stop()
	c.stop()
}

// bounds bounds every call to Redis. A context with a deadline for each call costs 15 % of
// the speed of a lock. One that many calls share, replaced every quarter of its length,
// costs 3 %.
type bounds struct {
	base    context.Context // ends with Close
	timeout time.Duration   // a call has at least this long, at most a quarter more
	current atomic.Pointer[sharedDeadline]
}

type sharedDeadline struct {
	context.Context
	cancel context.CancelFunc
	made   time.Time
}

// noDeadline ends at its deadline but does not show it. rueidis runs a lone call that
// has a deadline synchronously on the connection, which is a quarter faster, but there
// it cannot be cancelled.
type noDeadline struct{ context.Context }

func (noDeadline) Deadline() (time.Time, bool) { return time.Time{}, false }

// context returns the context of a call that no caller can cancel.
func (c *bounds) context() context.Context {
	shared := c.current.Load()
	if shared != nil && time.Since(shared.made) < c.timeout/4 {
		return shared
	}
	ctx, cancel := context.WithTimeout(c.base, c.timeout+c.timeout/4)
	next := &sharedDeadline{Context: ctx, cancel: cancel, made: time.Now()}
	if !c.current.CompareAndSwap(shared, next) {
		cancel()
		return c.current.Load()
	}
	return next
}

// contextFor is context that also ends with the caller's. done must be called.
func (c *bounds) contextFor(caller context.Context) (ctx context.Context, done func()) {
	if caller.Done() == nil {
		return c.context(), func() {}
	}
	ctx, cancel := context.WithCancel(noDeadline{c.context()})
	stop := context.AfterFunc(caller, cancel)
	return ctx, func() { stop(); cancel() }
}

// fresh is how long an answer of Redis proves that the connection works.
const fresh = 50 * time.Millisecond

// note remembers whether Redis answered a call for the key of a name; "": for several keys.
func (c *Calls) note(name string, err error) {
	at := int64(0)
	if outcome := scripts.OutcomeOf(err); outcome == scripts.Done || outcome == scripts.Refused {
		at = int64(c.now())
	}
	if one := c.of(name); one != nil {
		one.Store(at)
	}
}

// of is when the server that has the key of a name last answered, as answered. It is nil if
// that server is not known.
func (c *Calls) of(name string) *atomic.Int64 {
	switch {
	case c.serverOf == nil:
		return &c.answered
	case name == "":
		return nil
	}
	server := c.serverOf(name)
	if server == "" {
		return nil
	}
	one, known := c.each.Load(server)
	if !known {
		one, _ = c.each.LoadOrStore(server, new(atomic.Int64))
	}
	return one.(*atomic.Int64)
}

// answering says whether the server of the key of a name has just answered. Then a call may
// run on its caller's goroutine, which saves a lock a fifth of its time under load.
func (c *Calls) answering(name string) bool {
	return !c.block && c.answeredWithin(name, fresh)
}

// answeredWithin says whether the server of the key of a name answered so lately.
func (c *Calls) answeredWithin(name string, d time.Duration) bool {
	one := c.of(name)
	if one == nil {
		return false
	}
	last := one.Load()
	return last != 0 && c.now()-time.Duration(last) < d
}

// detached makes a call to Redis for the key of a name; "": for several keys. Unless its
// server has just answered, the call runs on a goroutine of its own, and the caller leaves
// when ctx ends, with an unknown outcome. rueidis does not watch the context while a call
// waits for a dial or its handshake, which may take 5 s.
func detached[T any](ctx context.Context, c *Calls, name string, call func(context.Context) (T, error)) (T, error) {
	if c.answering(name) {
		return call(ctx)
	}
	type answer struct {
		value T
		err   error
	}
	came := make(chan answer, 1)
	c.background(func() {
		value, err := call(ctx)
		came <- answer{value, err}
	})
	select {
	case a := <-came:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, errNoAnswer
	}
}

// redis is detached that makes the error ours and remembers whether Redis answered.
func redis[T any](ctx context.Context, c *Calls, name string, call func(context.Context) (T, error)) (T, error) {
	value, err := detached(ctx, c, name, call)
	err = c.ours(err)
	c.note(name, err)
	return value, err
}
