package locktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// Patience is how long a test waits for what must happen.
const Patience = redistest.Patience

// Long is a lease that no test outlives: what comes in time, comes not by its
// end.
const Long = 2 * Patience

// Harness is a locker with a proxy before Redis that a fault can disturb, and another one
// that reaches Redis undisturbed.
type Harness struct {
	T      *testing.T
	Kind   Kind
	Server Topology // nil of a kind without servers or with shared Masters, as is the next
	Proxy  *Proxies
	Client rueidis.Client // through the proxy, if there is one
	Locker Locker         // on client
	Other  Locker         // on a client of its own
}

// NewHarness makes both lockers with the same options, of a user with the least rights. Redis
// knows all scripts, so that each call is one command. change alters the options of client.
func NewHarness(t *testing.T, k Kind, o Options, change ...func(*rueidis.ClientOption)) *Harness {
	t.Helper()
	if k.Another != nil {
		l := Must(k.New(nil, o))(t)
		r := &Harness{T: t, Kind: k, Locker: l, Other: k.Another(l)}
		t.Cleanup(func() { _, _ = r.Locker.Close(), r.Other.Close() })
		return r
	}
	if k.Masters != nil {
		k.Prefix = fmt.Sprintf("case %d:", cases.Add(1))
		r := &Harness{T: t, Kind: k, Client: k.Masters.Client(t)}
		r.Locker, r.Other = k.Open(t, r.Client, o), k.Open(t, k.Masters.Client(t), o)
		return r
	}
	return NewHarnessOn(t, k, k.StartWithLeastRights(t), o, change...)
}

var cases atomic.Int64

// NewHarnessOn makes them on servers of the test's.
func NewHarnessOn(t *testing.T, k Kind, s Topology, o Options, change ...func(*rueidis.ClientOption)) *Harness {
	t.Helper()
	r := &Harness{T: t, Kind: k, Server: s}
	for _, text := range scripts.Scripts() {
		r.Server.Do(t, "SCRIPT", "LOAD", text)
	}
	r.Proxy = r.Server.Behind(t)
	change = append(change, func(c *rueidis.ClientOption) { c.InitAddress = []string{r.Proxy.Addr()} })
	r.Client = r.Server.Client(t, change...)
	r.Locker = k.Open(t, r.Client, o)
	r.Other = k.Open(t, r.Server.Client(t), o)
	return r
}

// Name is the name of key in Redis.
func (r *Harness) Name(key string) string { return r.Kind.Prefix + key }

// ServerOf is where key is; nil of a kind without servers.
func (r *Harness) ServerOf(key string) Topology {
	if r.Kind.Masters == nil {
		return r.Server
	}
	return Topology{r.Kind.Masters.Owner(r.T, r.Name(key))}
}

// Bounded is a context that outlasts the test.
func Bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Over is a context that has ended.
func Over(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	cancel()
	return ctx
}

// Close closes a locker whose servers may still be away: what it could not release frees
// itself.
func Close(l io.Closer) error {
	if err := l.Close(); !errors.Is(err, holdfast.ErrUnknown) {
		return err
	}
	return nil
}

// Opened is a locker that New must make. It is closed with the test.
func Opened[L io.Closer](l L, err error) func(testing.TB) L {
	return func(t testing.TB) L {
		t.Helper()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, Close(l)) })
		return l
	}
}

// Lock is a Lock that must succeed.
func Lock(t testing.TB, l holdfast.Locker, ctx context.Context, key string, c ...holdfast.LockOption) *holdfast.Lease {
	t.Helper()
	return Must(l.Lock(ctx, key, c...))(t)
}

// Cycle is a Lock and its Unlock.
func Cycle(l holdfast.Locker, ctx context.Context, key string) error {
	lease, err := l.Lock(ctx, key)
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

// Retry repeats TryLock until it succeeds, soon: Redis is there, but a quorum may have to find its
// nodes back, and a client its connection.
func Retry(t testing.TB, l holdfast.Locker, key string) (lease *holdfast.Lease) {
	t.Helper()
	ctx := Bounded(t)
	Await(t, func() bool {
		var err error
		lease, err = l.TryLock(ctx, key)
		return err == nil
	})
	return lease
}

// Acquired is how a Lock in the background ended.
type Acquired struct {
	Lease *holdfast.Lease
	Err   error
}

// Must is the result of a call that has to end well.
func Must[T any](result T, err error) func(testing.TB) T { return redistest.Must(result, err) }

// ErrOf is the error of a call.
func ErrOf[V any](_ V, err error) error { return err }

// Go makes a call on a goroutine of its own.
func Go(call func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	return done
}

// GoAcquire makes a call for a lease on a goroutine of its own.
func GoAcquire(call func() (*holdfast.Lease, error)) <-chan Acquired {
	done := make(chan Acquired, 1)
	go func() {
		lease, err := call()
		done <- Acquired{lease, err}
	}()
	return done
}

// GoLock calls Lock on a goroutine of its own.
func GoLock(l holdfast.Locker, ctx context.Context, key string, c ...holdfast.LockOption) <-chan Acquired {
	return GoAcquire(func() (*holdfast.Lease, error) { return l.Lock(ctx, key, c...) })
}

// Got waits for a Lock in the background, which must succeed.
func Got(t testing.TB, done <-chan Acquired) *holdfast.Lease {
	t.Helper()
	a := Within(t, done)
	require.NoError(t, a.Err)
	return a.Lease
}

// Next unlocks a lease, and returns that of a waiter for its key.
func Next(t testing.TB, l *holdfast.Lease, waiter <-chan Acquired) *holdfast.Lease {
	t.Helper()
	require.NoError(t, l.Unlock(Bounded(t)))
	return Got(t, waiter)
}

// Within receives from c, in bounded time.
func Within[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(Patience):
		require.FailNow(t, "nothing happens")
	}
	return v
}

// Renewed waits for the next renewal of a lease, which lives until then.
func Renewed(t testing.TB, l *holdfast.Lease) {
	t.Helper()
	before := l.Deadline()
	Await(t, func() bool { return l.Deadline().After(before) || l.Err() != nil }, "it is not renewed")
	require.NoError(t, l.Err())
}

// AwaitWaiters returns when that many clients wait for key.
func (r *Harness) AwaitWaiters(key string, n int) {
	r.T.Helper()
	s := r.ServerOf(key)
	if s == nil { // calls wait there, not clients
		Await(r.T, func() bool { w := r.status(key).Waiting; return w == n || n > 0 && w > n })
		return
	}
	Await(r.T, func() bool { return r.Kind.Waiting(r.T, s, r.Name(key)) == n })
}

// Traceless returns when no wait has left a trace of key: neither a subscription
// nor a place in a queue.
func (r *Harness) Traceless(key string) {
	r.T.Helper()
	s := r.ServerOf(key)
	if s == nil {
		r.AwaitWaiters(key, 0)
		return
	}
	var traces []string
	Await(r.T, func() bool { traces = r.Kind.left(r.T, s, r.Name(key)); return len(traces) == 0 }, "traces of a wait: %v", &traces)
}

// Owner is the owner of key, as Redis sees it.
func (r *Harness) Owner(key string) string { return r.status(key).Owner }

// Entries is how often key is entered, as Redis sees it.
func (r *Harness) Entries(key string) int { return r.status(key).Entries }

// Remaining is how long the lease of key lasts, as Redis sees it.
func (r *Harness) Remaining(key string) time.Duration { return r.status(key).Remaining }

func (r *Harness) status(key string) (s holdfast.Status) {
	Await(r.T, func() (answered bool) { // a call of a short lease may have less time than a slow machine takes
		var err error
		if s, err = r.Other.Inspect(Bounded(r.T), key); !errors.Is(err, holdfast.ErrUnknown) {
			require.NoError(r.T, err)
		}
		return err == nil
	})
	return s
}

// Tidy waits until nothing is left of a key that is neither held nor wanted: neither hold
// nor trace of a wait, and nothing without an expiry.
func (r *Harness) Tidy(key string) {
	r.T.Helper()
	if r.Server == nil {
		Await(r.T, func() bool { return !r.status(key).Held }, "a hold is left")
		r.Traceless(key)
		return
	}
	Await(r.T, func() bool { return !Exists(r.T, r.Server, r.Name(key)) }, "a hold is left")
	r.Traceless(key)
	for _, k := range r.Keys() {
		r.Server.Each(func(s Server) {
			require.NotEqual(r.T, -1, Number(r.T, s, "PTTL", k), "%q has no expiry", k)
		})
	}
}

// Keys are the names of all that is on any node, but for what says since when a node of
// a quorum has been up.
func (r *Harness) Keys() []string {
	r.T.Helper()
	all := map[string]bool{}
	r.Server.Each(func(s Server) {
		for _, n := range Strings(r.T, s, "KEYS", "*") {
			all[n] = true
		}
	})
	delete(all, "holdfast_node")
	return slices.Collect(maps.Keys(all))
}

// Settled is dump, when no node is late any more with what became of key: all say
// the same of its holders, and nothing changes for a while.
func (r *Harness) Settled(key string) (all map[string]string) {
	r.T.Helper()
	if r.Kind.Nodes < 2 {
		return r.Dump()
	}
	Await(r.T, func() bool {
		holders := map[string]bool{}
		r.Server.Each(func(s Server) {
			holders[s.Do(r.T, "HKEYS", r.Name(key)).String()] = true
		})
		all = r.Dump()
		time.Sleep(50 * time.Millisecond) // no event tells
		return len(holders) == 1 && maps.Equal(all, r.Dump())
	})
	return all
}

// Dump is the content of all keys.
func (r *Harness) Dump() map[string]string {
	all := map[string]string{}
	for _, k := range r.Keys() {
		r.Server.Each(func(s Server) {
			all[s.Addr()+" "+k] = s.Do(r.T, "DUMP", k).String()
		})
	}
	return all
}

// AwaitQueue returns when that many waiters stand in the queue of key.
func (r *Harness) AwaitQueue(key string, n int) {
	r.T.Helper()
	Await(r.T, func() bool { return len(Queued(r.T, r.ServerOf(key), r.Name(key))) == n })
}

// InQueue makes the locker wait for key, and returns when the queue has that many waiters.
func (r *Harness) InQueue(ctx context.Context, key string, n int, c ...holdfast.LockOption) <-chan Acquired {
	r.T.Helper()
	waiting := GoLock(r.Locker, ctx, key, c...)
	r.AwaitQueue(key, n)
	return waiting
}

// OtherInQueue does so with the other locker.
func (r *Harness) OtherInQueue(key string, n int) <-chan Acquired {
	r.T.Helper()
	waiting := GoLock(r.Other, Bounded(r.T), key)
	r.AwaitQueue(key, n)
	return waiting
}

// Answered returns when the locker knows of its waiters that they are in the queue. That
// Redis lists them does not say so. The locker makes one call to enter at a time: that
// another has entered does.
func (r *Harness) Answered(key string) {
	r.T.Helper()
	n := len(Queued(r.T, r.ServerOf(key), r.Name(key)))
	ctx, leave := context.WithCancel(Bounded(r.T))
	another := r.InQueue(ctx, key, n+1)
	leave()
	require.ErrorIs(r.T, Within(r.T, another).Err, context.Canceled)
	r.AwaitQueue(key, n)
}

// sentinels are the errors of ours.
var sentinels = []error{
	holdfast.ErrNotAcquired, holdfast.ErrLost, holdfast.ErrReleased, holdfast.ErrClosed, holdfast.ErrTooManyWaiters, holdfast.ErrUnavailable, holdfast.ErrUnknown,
	holdfast.ErrWrongType, holdfast.ErrOldServer, holdfast.ErrInvalidArgument, holdfast.ErrUpgrade,
}

// RequireSentinel requires that err matches this error of ours and no other, none if want is nil, and that its
// text has all these.
func RequireSentinel(t testing.TB, err, want error, texts ...string) {
	t.Helper()
	require.Error(t, err)
	for _, s := range sentinels {
		require.Equal(t, s == want, errors.Is(err, s), "%v: is it %v?", err, s)
	}
	for _, text := range texts {
		require.ErrorContains(t, err, text)
	}
}
