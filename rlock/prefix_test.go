package rlock_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// Redis and other programs know a lock by its prefix and key; what this locker tells names
// the key alone.
func TestPrefix_IsInRedisAlone(t *testing.T) {
	s := redistest.Start(t)
	var log bytes.Buffer
	events, renewed := make(chan string, 100), make(chan struct{}, 1)
	o := holdfast.Observer{
		Acquired: func(e holdfast.AcquiredEvent) { events <- e.Key },
		Refused:  func(e holdfast.RefusedEvent) { events <- e.Key },
		Released: func(e holdfast.ReleasedEvent) { events <- e.Key },
		Lost:     func(e holdfast.LostEvent) { events <- e.Key + ": " + e.Err.Error() },
		Renewed:  func(e holdfast.RenewedEvent) { events <- e.Key; locktest.Poke(renewed) },
		Woken:    func(e holdfast.WokenEvent) { events <- e.Key },
		Queue:    func(e holdfast.QueueEvent) { events <- e.Key },
	}
	l, err := rlock.New(s.Client(t), rlock.WithPrefix("lock:"), rlock.WithLease(300*time.Millisecond), rlock.WithObserver(o),
		rlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	plain, err := rlock.New(s.Client(t))
	require.NoError(t, err)
	defer plain.Close()

	theirs, err := plain.Lock(t.Context(), "lock:k")
	require.NoError(t, err)
	_, err = l.TryLock(t.Context(), "k")
	require.ErrorIs(t, err, rlock.ErrNotAcquired)
	require.ErrorContains(t, err, `lock "k": `)
	require.NotContains(t, err.Error(), "lock:k")
	waiting := locktest.GoLock(l, t.Context(), "k")
	locktest.Await(t, func() bool { return locktest.Listeners(t, s, "redisson_lock__channel:{lock:k}") == 1 })
	require.NoError(t, theirs.Unlock(t.Context()))
	mine := locktest.Got(t, waiting)
	require.Equal(t, "k", mine.Key())
	status, err := plain.Inspect(t.Context(), "lock:k")
	require.NoError(t, err)
	require.Equal(t, mine.Owner(), status.Owner)
	locktest.Within(t, renewed)
	held, err := plain.ForceUnlock(t.Context(), "lock:k")
	require.NoError(t, err)
	require.True(t, held)
	<-mine.Done()
	require.ErrorContains(t, mine.Err(), `lease of "k": `)
	require.ErrorContains(t, mine.Unlock(t.Context()), `unlock "k": `)
	require.ErrorIs(t, l.Do(t.Context(), "k", func(ctx context.Context) error {
		require.Equal(t, "k", holdfast.LeaseFrom(ctx).Key())
		_, err := plain.ForceUnlock(t.Context(), "lock:k")
		<-ctx.Done()
		require.ErrorContains(t, context.Cause(ctx), `lease of "k": `)
		locktest.RequireSentinel(t, context.Cause(ctx), rlock.ErrLost)
		return err
	}), rlock.ErrLost)
	require.NoError(t, l.Close())
	close(events)
	seen := map[string]bool{}
	for e := range events {
		seen[e] = true
	}
	require.Equal(t, map[string]bool{"k": true, `k: holdfast: lease of "k": lease lost: the lease is no longer ours`: true}, seen)
	require.Contains(t, log.String(), `key="\"k\""`)
	require.NotContains(t, log.String(), "lock:k")
}

// On a Redis Cluster, all that belongs to a name has to share its slot.
func TestPrefix_OnACluster(t *testing.T) {
	k := kind
	k.Cluster, k.Prefix = true, "lock{"
	l := k.Open(t, k.Start(t).Client(t), locktest.Options{})
	_, err := l.TryLock(t.Context(), "a")
	require.ErrorContains(t, err, "hash tag")
	require.NoError(t, l.Do(t.Context(), "a}", func(context.Context) error { return nil }))
}
