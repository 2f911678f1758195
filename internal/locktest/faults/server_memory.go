package faults

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() {
	register("F20_KilledBackEmpty", func(t *testing.T, d Kind) {
		testForgotten(t, d, 2*short, func(s Topology) { s.Restart() }) // a node of a Redis Cluster is away for 2 s
	})
	register("F20_WaitsRideOutARestart", testRestartRiddenOut)
	register("F21_KilledBackWithItsMemory", testBackWithMemory).real = true
	register("F24_Flushed", func(t *testing.T, d Kind) {
		testForgotten(t, d, short, func(s Topology) { s.Do(t, "FLUSHALL") })
	})
	register("F24_KeyDeleted", func(t *testing.T, d Kind) {
		// Longer than a key is awaited to be gone: one that was made again is found.
		testForgotten(t, d, 24*time.Second, func(s Topology) { s.Do(t, "DEL", "k") })
	})
	register("F24_NextCallTells", testNextCallTells)
	register("F31_Evicted", func(t *testing.T, d Kind) { testForgotten(t, d, short, evict(t)) }).real = true
}

const short = 9 * time.Second // a lease of which a test awaits the renewal

// evict has Redis throw out whatever has an expiry.
func evict(t *testing.T) func(Topology) {
	return func(s Topology) {
		s.Do(t, "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
		s.Do(t, "CONFIG", "SET", "maxmemory", "1")
		require.False(t, Exists(t, s, "k"))
		s.Do(t, "CONFIG", "SET", "maxmemory", "0")
		s.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction") // a quorum's nodes have no vote with another
	}
}

// testForgotten makes Redis lose the lock. The holder learns of it at the next renewal, and
// nothing brings the lock back. A waiter elsewhere gets it, with a larger fence, and keeps
// it.
func testForgotten(t *testing.T, d Kind, lease time.Duration, forget func(Topology), args ...string) {
	s := d.Start(t, args...)
	locker := d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true, MaxLease: lease})
	other := d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true, MaxLease: lease})
	l := Lock(t, locker, Bounded(t), "k")
	inside := Lock(t, locker, l.Bind(Bounded(t)), "k")
	bound := l.Bind(Bounded(t))

	forget(s)
	<-l.Done()
	require.True(t, time.Now().Before(l.Deadline()), "told by a renewal")
	for _, e := range []*holdfast.Lease{l, inside} {
		require.ErrorIs(t, e.Err(), holdfast.ErrLost)
		require.ErrorIs(t, e.Err(), watchdog.ErrNotOurs)
	}
	<-bound.Done()
	Gone(t, s, "k") // and no renewal has made it again
	_, err := locker.Lock(l.Bind(Bounded(t)), "k")
	RequireSentinel(t, err, holdfast.ErrLost)
	Gone(t, s, "k") // and no nested call has made it again

	now := Lock(t, other, Bounded(t), "k")
	require.Greater(t, now.Fence(), l.Fence())
	RequireSentinel(t, inside.Unlock(Bounded(t)), holdfast.ErrLost)
	RequireSentinel(t, l.Unlock(Bounded(t)), holdfast.ErrLost)
	held, err := other.Inspect(Bounded(t), "k")
	require.NoError(t, err)
	require.Equal(t, now.Owner(), held.Owner)
	require.Equal(t, 1, held.Entries)
	require.NoError(t, now.Unlock(Bounded(t)))
}

// Any call about a lost lease tells of the loss before a renewal does.
func testNextCallTells(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long})
	for name, call := range map[string]func(l, inside *holdfast.Lease) error{
		"nested lock": func(l, _ *holdfast.Lease) error {
			_, err := r.Locker.Lock(l.Bind(Bounded(t)), l.Key())
			return err
		},
		"nested try": func(l, _ *holdfast.Lease) error {
			_, err := r.Locker.TryLock(l.Bind(Bounded(t)), l.Key())
			return err
		},
		"nested unlock": func(_, inside *holdfast.Lease) error { return inside.Unlock(Bounded(t)) },
	} {
		l := Lock(t, r.Locker, Bounded(t), name)
		inside := Lock(t, r.Locker, l.Bind(Bounded(t)), name)
		r.Server.Do(t, "DEL", name)
		RequireSentinel(t, call(l, inside), holdfast.ErrLost)
		<-l.Done()
		require.ErrorIs(t, l.Err(), watchdog.ErrNotOurs)
		RequireSentinel(t, l.Unlock(Bounded(t)), holdfast.ErrLost)
		// A node of a quorum may have been late, and have it after the others lost it.
		Await(t, func() bool { return !Exists(t, r.Server, name) })
	}
	l := Lock(t, r.Locker, Bounded(t), "k")
	r.Server.Do(t, "DEL", "k")
	now := Lock(t, r.Other, Bounded(t), "k")
	RequireSentinel(t, l.Unlock(Bounded(t)), holdfast.ErrLost)
	require.True(t, Exists(t, r.Server, "k"), "it has released another's")
	require.NoError(t, now.Unlock(Bounded(t)))
}

// Redis is away for a while and comes back empty: waiters go on.
func testRestartRiddenOut(t *testing.T, d Kind) {
	s := d.Start(t)
	locker := d.Open(t, s.Client(t), Options{Lease: Long, Unguarded: true})
	other := d.Open(t, s.Client(t), Options{Lease: Long, Unguarded: true})
	for _, away := range []time.Duration{0, 300 * time.Millisecond, time.Second} {
		key := away.String()
		Lock(t, other, Bounded(t), key)
		before := GoLock(locker, Bounded(t), key)
		Await(t, func() bool { return d.Waiting(t, s, key) == 1 })
		s.Kill()
		during := make(chan Acquired, 1)
		go func() {
			l, err := locker.TryLockFor(Bounded(t), "during", time.Minute)
			during <- Acquired{Lease: l, Err: err}
		}()
		time.Sleep(away)
		s.Restart()
		require.NoError(t, Got(t, before).Unlock(Bounded(t)))
		require.NoError(t, Got(t, during).Unlock(Bounded(t)))
	}
}

// A lock that Redis remembers lives on as if nothing had been.
func testBackWithMemory(t *testing.T, d Kind) {
	const lease = 12 * time.Second
	s := d.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	// With its guard, a quorum does not trust a node's memory.
	locker := d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true, Unguarded: true})
	other := d.Open(t, s.Client(t), Options{Lease: lease, Fencing: true, Unguarded: true})
	l := Lock(t, locker, Bounded(t), "k")
	inside := Lock(t, locker, l.Bind(Bounded(t)), "k")
	s.Restart()

	var held holdfast.Status
	Await(t, func() bool { // the first call finds its connection cut
		var err error
		held, err = other.Inspect(Bounded(t), "k")
		return err == nil
	})
	require.Equal(t, l.Owner(), held.Owner)
	require.Equal(t, 2, held.Entries)
	until := l.Deadline()
	Await(t, func() bool { return l.Deadline().After(until) }, "it is renewed")
	waiting := GoLock(other, Bounded(t), "k")
	require.NoError(t, inside.Unlock(Bounded(t)))
	require.NoError(t, l.Unlock(Bounded(t)))
	next := Got(t, waiting)
	require.Greater(t, next.Fence(), l.Fence())
	require.NoError(t, next.Unlock(Bounded(t)))
}
