package locktest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// long is a lease that no test outlives: what comes in time, comes not by its
// end.
const long = time.Minute

// faultRig is what most faults need: a locker whose way to Redis can be
// disturbed, and another one that reaches it undisturbed.
type faultRig struct {
	t      *testing.T
	kind   Kind
	server fleet
	proxy  *ways
	client rueidis.Client  // through the proxy
	locker holdfast.Locker // on client
	other  holdfast.Locker // on a client of its own
}

// newFaultRig makes both lockers with the same options. Redis knows all scripts,
// so that each call is one command. change alters the options of client.
func newFaultRig(t *testing.T, d Kind, o Options, change ...func(*rueidis.ClientOption)) *faultRig {
	t.Helper()
	return newFaultRigOn(t, d, d.start(t), o, change...)
}

// newFaultRigOn makes them on servers of the test's.
func newFaultRigOn(t *testing.T, d Kind, s fleet, o Options, change ...func(*rueidis.ClientOption)) *faultRig {
	t.Helper()
	r := &faultRig{t: t, kind: d, server: s}
	for _, text := range scripts.Scripts() {
		r.server.Do(t, "SCRIPT", "LOAD", text)
	}
	r.proxy = r.server.behind(t)
	change = append(change, func(c *rueidis.ClientOption) { c.InitAddress = []string{r.proxy.Addr()} })
	r.client = r.server.Client(t, change...)
	r.locker = d.Open(t, r.client, o)
	r.other = d.Open(t, r.server.Client(t), o)
	return r
}

// bounded is a context of which a test expects no end.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// lock is a Lock that must succeed.
func lock(t testing.TB, l holdfast.Locker, ctx context.Context, key string, c ...holdfast.LockOption) *holdfast.Lease {
	t.Helper()
	lease, err := l.Lock(ctx, key, c...)
	require.NoError(t, err)
	return lease
}

// acquired is how a Lock in the background ended.
type acquired struct {
	lease *holdfast.Lease
	err   error
}

// lockAside calls Lock on a goroutine of its own.
func lockAside(l holdfast.Locker, ctx context.Context, key string, c ...holdfast.LockOption) <-chan acquired {
	done := make(chan acquired, 1)
	go func() {
		lease, err := l.Lock(ctx, key, c...)
		done <- acquired{lease, err}
	}()
	return done
}

// got waits for a Lock in the background, which must succeed.
func got(t testing.TB, done <-chan acquired) *holdfast.Lease {
	t.Helper()
	a := within(t, done)
	require.NoError(t, a.err)
	return a.lease
}

// within is what comes out of c, which is not waited for for ever.
func within[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		require.FailNow(t, "nothing happens")
	}
	return v
}

// awaitWaiters returns when so many clients wait for key.
func (r *faultRig) awaitWaiters(key string, n int) {
	r.t.Helper()
	await(r.t, func() bool { return r.kind.waiting(r.t, r.server, key) == n })
}

// traceless returns when no wait has left a trace of key: neither a subscription
// nor a place in a queue.
func (r *faultRig) traceless(key string) {
	r.t.Helper()
	var traces []string
	await(r.t, func() bool { traces = left(r.t, r.server, key); return len(traces) == 0 }, "traces of a wait: %v", &traces)
}

// owner is who has key, as Redis sees it.
func (r *faultRig) owner(key string) string {
	s, err := r.other.Inspect(bounded(r.t), key)
	require.NoError(r.t, err)
	return s.Owner
}

// entries is how often key is entered, as Redis sees it.
func (r *faultRig) entries(key string) int {
	s, err := r.other.Inspect(bounded(r.t), key)
	require.NoError(r.t, err)
	return s.Entries
}

// tidy waits until nothing is left of a key that nobody holds or wants: neither
// hold nor trace of a wait, and nothing without an expiry.
func (r *faultRig) tidy(key string) {
	r.t.Helper()
	await(r.t, func() bool { return !exists(r.t, r.server, key) }, "a hold is left")
	r.traceless(key)
	for _, k := range r.keys() {
		r.server.each(func(s *redistest.Server) {
			require.NotEqual(r.t, -1, number(r.t, s, "PTTL", k), "%q has no expiry", k)
		})
	}
}

// keys are the names of all that is on any node, but for what says since when a node of
// a quorum has been up.
func (r *faultRig) keys() []string {
	r.t.Helper()
	all := map[string]bool{}
	r.server.each(func(s *redistest.Server) {
		m := s.Do(r.t, "KEYS", "*")
		names, err := m.AsStrSlice()
		require.NoError(r.t, err)
		for _, n := range names {
			all[n] = true
		}
	})
	delete(all, "holdfast_node")
	return slices.Collect(maps.Keys(all))
}

// settled is dump, when no node is late any more with what became of key: all say
// the same of its holders, and nothing changes for a while.
func (r *faultRig) settled(key string) (all map[string]string) {
	r.t.Helper()
	if r.kind.Nodes < 2 {
		return r.dump()
	}
	await(r.t, func() bool {
		holders := map[string]bool{}
		r.server.each(func(s *redistest.Server) {
			m := s.Do(r.t, "HKEYS", key)
			holders[m.String()] = true
		})
		all = r.dump()
		time.Sleep(50 * time.Millisecond) // no event tells
		return len(holders) == 1 && maps.Equal(all, r.dump())
	})
	return all
}

// dump is the content of all keys.
func (r *faultRig) dump() map[string]string {
	all := map[string]string{}
	for _, k := range r.keys() {
		r.server.each(func(s *redistest.Server) {
			m := s.Do(r.t, "DUMP", k)
			all[s.Addr()+" "+k] = m.String()
		})
	}
	return all
}

// inLine has the locker wait for key, and returns when so many are in the queue.
func (r *faultRig) inLine(ctx context.Context, key string, n int, c ...holdfast.LockOption) <-chan acquired {
	r.t.Helper()
	waiting := lockAside(r.locker, ctx, key, c...)
	await(r.t, func() bool { return len(queued(r.t, r.server, key)) == n })
	return waiting
}

// answered returns when the locker knows of its waiters that they are in the queue. That
// Redis lists them does not say so. The locker makes one call to enter at a time: that
// another has entered does.
func (r *faultRig) answered(key string) {
	r.t.Helper()
	n := len(queued(r.t, r.server, key))
	ctx, leave := context.WithCancel(bounded(r.t))
	another := r.inLine(ctx, key, n+1)
	leave()
	require.ErrorIs(r.t, within(r.t, another).err, context.Canceled)
	await(r.t, func() bool { return len(queued(r.t, r.server, key)) == n })
}

// sentinels are the errors of ours.
var sentinels = []error{
	holdfast.ErrNotAcquired, holdfast.ErrLost, holdfast.ErrReleased, holdfast.ErrClosed, holdfast.ErrQueueFull, holdfast.ErrUnavailable, holdfast.ErrUnknown,
	holdfast.ErrWrongType,
}

// requireSentinel requires that err matches this error of ours and no other;
// none if want is nil.
func requireSentinel(t testing.TB, err, want error) {
	t.Helper()
	require.Error(t, err)
	for _, s := range sentinels {
		require.Equal(t, s == want, errors.Is(err, s), "%v: is it %v?", err, s)
	}
}
