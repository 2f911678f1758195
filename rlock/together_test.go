package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// tryLockAll takes keys with one call, as multilock.LockAll does.
func tryLockAll(t *testing.T, l *rlock.Locker, keys ...string) ([]*holdfast.Lease, error) {
	return engine.Of(l).TryLockAll(t.Context(), keys, nil)
}

// Leases that were taken together are renewed, lost and released one by one.
func TestTryLockAll_LeasesAreOrdinary(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	l := userLocker(t, server.Client(t), holdfast.WithLease(30*time.Second))
	leases := locktest.Must(tryLockAll(t, l, "a", "b"))(t)
	before := leases[0].Deadline()
	locktest.Await(t, func() bool { return leases[0].Deadline().After(before) })
	server.Do(t, "DEL", "a")
	<-leases[0].Done()
	require.ErrorIs(t, leases[0].Err(), holdfast.ErrLost)
	require.NoError(t, leases[1].Err())
	require.ErrorIs(t, locktest.ErrOf(tryLockAll(t, l, "b", "c")), holdfast.ErrNotAcquired) // b is held here
	require.NoError(t, leases[1].Unlock(t.Context()))
	require.NoError(t, l.Close())
	require.ErrorIs(t, locktest.ErrOf(tryLockAll(t, l, "b", "c")), holdfast.ErrClosed)
}
