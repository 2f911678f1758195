package rlock_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// tryLockAll takes keys with one call, as multilock.LockAll does.
func tryLockAll(t *testing.T, l *rlock.Locker, keys ...string) ([]*holdfast.Lease, error) {
	return engine.Of(l).TryLockAll(t.Context(), keys, nil)
}

// After a lost reply the keys are free, well before the leases would end.
func TestG5_TryLockAllWhoseReplyIsLost(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.NewProxy(t, server.Addr())
	l := userLocker(t, server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }),
		holdfast.WithLease(time.Minute))
	other := userLocker(t, server.Client(t))
	_, err := tryLockAll(t, other, "x", "y") // so that Redis knows the script, and runs it at the first call
	require.NoError(t, err)
	proxy.SwallowReply(1, func(cmd []string) bool { return slices.Contains(cmd, "c") })
	_, err = tryLockAll(t, l, "a", "b", "c")
	require.ErrorIs(t, err, holdfast.ErrUnknown)
	for _, key := range []string{"a", "b", "c"} {
		lease, err := other.TryLockFor(t.Context(), key, locktest.Patience)
		require.NoError(t, err)
		require.NoError(t, lease.Unlock(t.Context()))
	}
	again, err := tryLockAll(t, l, "a", "b", "c")
	require.NoError(t, err)
	for _, lease := range again {
		require.NoError(t, lease.Unlock(t.Context()))
	}
}

// Leases that were taken together are renewed, lost and released one by one.
func TestTryLockAll_LeasesAreOrdinary(t *testing.T) {
	server := redistest.Start(t)
	l := userLocker(t, server.Client(t), holdfast.WithLease(3*time.Second))
	leases, err := tryLockAll(t, l, "a", "b")
	require.NoError(t, err)
	before := leases[0].Deadline()
	locktest.Await(t, func() bool { return leases[0].Deadline().After(before) })
	server.Do(t, "DEL", "a")
	<-leases[0].Done()
	require.ErrorIs(t, leases[0].Err(), holdfast.ErrLost)
	require.NoError(t, leases[1].Err())
	_, err = tryLockAll(t, l, "b", "c") // b is held here
	require.ErrorIs(t, err, holdfast.ErrNotAcquired)
	require.NoError(t, leases[1].Unlock(t.Context()))
	require.NoError(t, l.Close())
	_, err = tryLockAll(t, l, "b", "c")
	require.ErrorIs(t, err, holdfast.ErrClosed)
}
