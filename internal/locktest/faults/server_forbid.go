package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// One key that a user may no longer touch is among many of a call, which Redis
// refuses as a whole.

func init() {
	register("F32_ForbiddenKeyAmongLeases", testForbiddenAmongLeases).real = true
	registerFair("F32_ForbiddenKeyAmongWaiters", testForbiddenAmongWaiters).real = true
}

// manyKeys are enough for a call of several, which is asked again in parts twice.
func manyKeys() (keys []string) {
	for i := range 30 {
		keys = append(keys, fmt.Sprint("ok:", i))
	}
	return append(keys, "forbidden")
}

func forbid(t *testing.T, s Topology) {
	s.Do(t, "ACL", "SETUSER", "least", "resetkeys", "~ok:*", "~redisson_*", "~holdfast_*")
}

// The forbidden lease ends, as it cannot be renewed; all others go on.
func testForbiddenAmongLeases(t *testing.T, d Kind) {
	s := d.Start(t)
	d.LeastRights(t, s)
	locker := d.Open(t, s.Client(t, AsLeast), Options{Lease: 15 * time.Second})
	var leases []*holdfast.Lease
	for _, key := range manyKeys() {
		leases = append(leases, Lock(t, locker, Bounded(t), key))
	}
	forbid(t, s)
	last := len(leases) - 1
	Within(t, leases[last].Done())
	require.ErrorIs(t, leases[last].Err(), holdfast.ErrLost)
	over := leases[last].Deadline()
	for _, l := range leases[:last] {
		require.NoError(t, l.Err(), l.Key())
		require.True(t, l.Deadline().After(over), l.Key())
		require.NoError(t, l.Unlock(Bounded(t)))
	}
}

// A waiter for the forbidden key gets the error, when the outage has been too long; all others
// keep their places and are served.
func testForbiddenAmongWaiters(t *testing.T, d Kind) {
	s := d.Start(t)
	d.LeastRights(t, s)
	o := Options{Lease: Long, MaxOutage: ptr(time.Second), Stale: 2 * time.Second, FirstLease: Long}
	locker, other := d.Open(t, s.Client(t, AsLeast), o), d.Open(t, s.Client(t), o)
	keys := manyKeys()
	var held []*holdfast.Lease
	var waits []<-chan Acquired
	for _, key := range keys {
		held = append(held, Lock(t, other, Bounded(t), key))
		waits = append(waits, GoLock(locker, Bounded(t), key))
	}
	for _, key := range keys {
		Await(t, func() bool { return len(Queued(t, s, key)) == 1 })
	}
	forbid(t, s)
	last := len(keys) - 1
	err := Within(t, waits[last]).Err
	require.ErrorContains(t, err, "NOPERM")
	RequireSentinel(t, err, holdfast.ErrUnavailable)
	for i := range last {
		require.Empty(t, waits[i], keys[i])
		require.NoError(t, held[i].Unlock(Bounded(t)))
		require.NoError(t, Got(t, waits[i]).Unlock(Bounded(t)))
	}
}
