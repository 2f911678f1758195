package locktest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() {
	register("F20_KilledBackEmpty", func(t *testing.T, d Kind) {
		testForgotten(t, d, short, func(s fleet) { s.Restart() })
	})
	register("F20_WaitsRideOutARestart", testRestartRiddenOut)
	register("F21_KilledBackWithItsMemory", testBackWithMemory)
	register("F24_Flushed", func(t *testing.T, d Kind) {
		testForgotten(t, d, short, func(s fleet) { s.Do(t, "FLUSHALL") })
	})
	register("F24_KeyDeleted", func(t *testing.T, d Kind) {
		// Longer than a key is awaited to be gone: one that was made again is found.
		testForgotten(t, d, 24*time.Second, func(s fleet) { s.Do(t, "DEL", "k") })
	})
	register("F24_NextCallTells", testNextCallTells)
	register("F31_Evicted", func(t *testing.T, d Kind) { testForgotten(t, d, short, evict(t)) })
}

const short = 3 * time.Second // a lease of which a test awaits the renewal

// evict has Redis throw out whatever has an expiry.
func evict(t *testing.T) func(fleet) {
	return func(s fleet) {
		s.Do(t, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
		s.Do(t, "CONFIG", "SET", "maxmemory", "1")
		require.False(t, exists(t, s, "k"))
		s.Do(t, "CONFIG", "SET", "maxmemory", "0")
		s.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction") // a quorum's nodes have no vote with another
	}
}

// testForgotten has Redis lose the lock. The holder is told at the next renewal
// and nothing brings the lock back; who waits elsewhere gets it, with a larger
// fence, and keeps it.
func testForgotten(t *testing.T, d Kind, lease time.Duration, forget func(fleet), args ...string) {
	s := d.start(t, args...)
	locker := d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true, MaxLease: lease})
	other := d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true, MaxLease: lease})
	l := lock(t, locker, bounded(t), "k")
	inside := lock(t, locker, l.Bind(bounded(t)), "k")
	bound := l.Bind(bounded(t))

	forget(s)
	<-l.Done()
	require.True(t, time.Now().Before(l.Deadline()), "told by a renewal")
	for _, e := range []*holdfast.Lease{l, inside} {
		require.ErrorIs(t, e.Err(), holdfast.ErrLost)
		require.ErrorIs(t, e.Err(), watchdog.ErrNotOurs)
	}
	<-bound.Done()
	gone(t, s, "k") // and no renewal has made it again
	_, err := locker.Lock(l.Bind(bounded(t)), "k")
	requireSentinel(t, err, holdfast.ErrLost)
	gone(t, s, "k") // and no nested call has made it again

	now := lock(t, other, bounded(t), "k")
	require.Greater(t, now.Fence(), l.Fence())
	requireSentinel(t, inside.Unlock(bounded(t)), holdfast.ErrLost)
	requireSentinel(t, l.Unlock(bounded(t)), holdfast.ErrLost)
	held, err := other.Inspect(bounded(t), "k")
	require.NoError(t, err)
	require.Equal(t, now.Owner(), held.Owner)
	require.Equal(t, 1, held.Entries)
	require.NoError(t, now.Unlock(bounded(t)))
}

// Any call about a lost lease tells of the loss before a renewal does.
func testNextCallTells(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long})
	for name, call := range map[string]func(l, inside *holdfast.Lease) error{
		"nested lock": func(l, _ *holdfast.Lease) error {
			_, err := r.locker.Lock(l.Bind(bounded(t)), l.Key())
			return err
		},
		"nested try": func(l, _ *holdfast.Lease) error {
			_, err := r.locker.TryLock(l.Bind(bounded(t)), l.Key())
			return err
		},
		"nested unlock": func(_, inside *holdfast.Lease) error { return inside.Unlock(bounded(t)) },
	} {
		l := lock(t, r.locker, bounded(t), name)
		inside := lock(t, r.locker, l.Bind(bounded(t)), name)
		r.server.Do(t, "DEL", name)
		requireSentinel(t, call(l, inside), holdfast.ErrLost)
		<-l.Done()
		require.ErrorIs(t, l.Err(), watchdog.ErrNotOurs)
		requireSentinel(t, l.Unlock(bounded(t)), holdfast.ErrLost)
		// A node of a quorum may have been late, and have it after the others lost it.
		await(t, func() bool { return !exists(t, r.server, name) })
	}
	l := lock(t, r.locker, bounded(t), "k")
	r.server.Do(t, "DEL", "k")
	now := lock(t, r.other, bounded(t), "k")
	requireSentinel(t, l.Unlock(bounded(t)), holdfast.ErrLost)
	require.True(t, exists(t, r.server, "k"), "it has released another's")
	require.NoError(t, now.Unlock(bounded(t)))
}

// Redis is away for a while and comes back empty: whoever waited goes on.
func testRestartRiddenOut(t *testing.T, d Kind) {
	s := d.start(t)
	locker := d.Open(t, s.Client(t), Options{Lease: long, Unguarded: true})
	other := d.Open(t, s.Client(t), Options{Lease: long, Unguarded: true})
	for _, away := range []time.Duration{0, 300 * time.Millisecond, time.Second} {
		key := away.String()
		lock(t, other, bounded(t), key)
		before := lockAside(locker, bounded(t), key)
		await(t, func() bool { return d.waiting(t, s, key) == 1 })
		s.Kill()
		during := make(chan acquired, 1)
		go func() {
			l, err := locker.TryLockFor(bounded(t), "during", time.Minute)
			during <- acquired{l, err}
		}()
		time.Sleep(away)
		s.Restart()
		require.NoError(t, got(t, before).Unlock(bounded(t)))
		require.NoError(t, got(t, during).Unlock(bounded(t)))
	}
}

// A lock that Redis remembers lives on as if nothing had been.
func testBackWithMemory(t *testing.T, d Kind) {
	const lease = 5 * time.Second
	s := d.start(t, "--appendonly", "yes", "--appendfsync", "always")
	// With its guard, a quorum does not trust a node's memory.
	locker := d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true, Unguarded: true})
	other := d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true, Unguarded: true})
	l := lock(t, locker, bounded(t), "k")
	inside := lock(t, locker, l.Bind(bounded(t)), "k")
	s.Restart()

	var held holdfast.Status
	await(t, func() bool { // the first call finds its connection cut
		var err error
		held, err = other.Inspect(bounded(t), "k")
		return err == nil
	})
	require.Equal(t, l.Owner(), held.Owner)
	require.Equal(t, 2, held.Entries)
	until := l.Deadline()
	await(t, func() bool { return l.Deadline().After(until) }, "it is renewed")
	waiting := lockAside(other, bounded(t), "k")
	require.NoError(t, inside.Unlock(bounded(t)))
	require.NoError(t, l.Unlock(bounded(t)))
	next := got(t, waiting)
	require.Greater(t, next.Fence(), l.Fence())
	require.NoError(t, next.Unlock(bounded(t)))
}
