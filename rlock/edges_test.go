package rlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// A holder that unlocks just after the cap comes before the scheduler, which would have
// released the key.
func TestG4_UnlockAtTheEndOfMaxHoldFreesTheKey(t *testing.T) {
	s := redistest.Start(t)
	l := userLocker(t, s.Client(t))
	ctx := context.Background()
	const keys = 100
	for i := range keys {
		e := locktest.Lock(t, l, ctx, fmt.Sprint("k", i), holdfast.MaxHold(5*time.Millisecond))
		for time.Now().Before(e.Deadline()) { // spin: a sleep would let the scheduler be first
		}
		reason := e.Err()
		err := e.Unlock(ctx)
		require.ErrorIs(t, err, holdfast.ErrLost)
		require.Equal(t, errors.Unwrap(reason).Error(), errors.Unwrap(err).Error(), "the reason does not change")
	}
	require.NoError(t, l.Close()) // waits for the releases in the background
	require.Zero(t, locktest.Number(t, s, "DBSIZE"))
}

// A dial that times out looks like the deadline of a context, but is not one.
func TestF15_DialTimeoutIsUnavailable(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	var hang atomic.Bool
	l := userLocker(t, s.Client(t, func(o *rueidis.ClientOption) {
		o.InitAddress = []string{p.Addr()}
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if hang.Load() {
				d = &net.Dialer{Timeout: time.Nanosecond}
			}
			return d.DialContext(ctx, "tcp", addr)
		}
	}))
	ctx := context.Background()
	require.NoError(t, l.Do(ctx, "k", func(context.Context) error { return nil }))
	hang.Store(true)
	p.Cut()
	locktest.Await(t, func() bool { // the first call may still meet the end of the old connection
		return locktest.ErrOf(l.TryLock(ctx, "k")) != nil
	})
	_, err := l.TryLock(ctx, "k")
	require.ErrorIs(t, err, holdfast.ErrUnavailable)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	hang.Store(false)
}

func TestRefusedCallsDoNotCheckTheServer(t *testing.T) {
	s := redistest.Start(t)
	l := userLocker(t, s.Client(t), holdfast.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	over := locktest.Over(context.Background())
	require.ErrorIs(t, locktest.ErrOf(l.Lock(over, "k")), context.Canceled)
	require.Error(t, locktest.ErrOf(l.Lock(context.Background(), "k", holdfast.FixedLease(time.Nanosecond))))
	require.NoError(t, l.Close())
	require.NotContains(t, locktest.Text(t, s, "INFO", "commandstats"), "cmdstat_info")
}

// The listeners of a lease hear of its end before the next lease begins, even when the key
// stays within the process.
func TestG1_HandoverComesAfterTheEndIsNotified(t *testing.T) {
	s := redistest.Start(t)
	l := userLocker(t, s.Client(t), holdfast.WithLocalHandover(30*time.Second))
	ctx := context.Background()
	e := locktest.Lock(t, l, ctx, "k")
	bound := make([]context.Context, 20_000) // notifying them all takes a moment
	for i := range bound {
		bound[i] = e.Bind(ctx)
	}
	alive := make(chan int)
	telling := &locktest.TellingContext{Context: ctx, Waiting: make(chan struct{})}
	go func() {
		next, err := l.Lock(telling, "k")
		n := 0
		for _, b := range bound {
			if b.Err() == nil {
				n++
			}
		}
		if err != nil || next.Unlock(ctx) != nil {
			n = -1
		}
		alive <- n
	}()
	locktest.Within(t, telling.Waiting)
	require.NoError(t, e.Unlock(ctx))
	require.Zero(t, <-alive, "contexts of the old lease within the new one")
}

// A nested Unlock that has to wait for another nested call waits for as long as the lease
// lives, and renewals prolong that.
func TestG3_ANestedUnlockThatWaitsSeesNoLoss(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const lease = 30 * time.Second
	l := userLocker(t, s.Client(t), holdfast.WithLease(lease), holdfast.WithMaxOutage(lease*4/3))
	ctx := context.Background()
	outer := locktest.Lock(t, l, ctx, "k")
	inner := locktest.Lock(t, l, outer.Bind(ctx), "k")
	failed := func() string {
		return regexp.MustCompile(`cmdstat_evalsha:.*?(failed_calls=\d+)`).FindStringSubmatch(s.Do(t, "INFO", "commandstats").String())[1]
	}
	before := failed()
	s.Do(t, "CONFIG", "SET", "maxmemory", "1") // Redis refuses to count, but renews
	rides := locktest.GoLock(l, outer.Bind(ctx), "k")
	locktest.Await(t, func() bool { return failed() != before }) // until that call has the lease's slot
	err := inner.Unlock(ctx)
	require.NoError(t, outer.Err())
	require.NotErrorIs(t, err, holdfast.ErrLost)
	require.ErrorIs(t, (<-rides).Err, holdfast.ErrUnavailable)
	s.Do(t, "CONFIG", "SET", "maxmemory", "0")
	require.NoError(t, outer.Unlock(ctx))
}

// Close also gives back fences that were reserved for handovers. Otherwise those of the next hold
// would be ahead of the clock, and go back after a loss of memory.
func TestG10_CloseGivesReservedNumbersBack(t *testing.T) {
	s := redistest.Start(t)
	opts := []holdfast.Option{holdfast.WithFencing(), holdfast.WithLocalHandover(10 * time.Second)}
	a, b := userLocker(t, s.Client(t), opts...), userLocker(t, s.Client(t), opts...)
	ctx := context.Background()
	e := locktest.Lock(t, b, ctx, "k")
	first := locktest.GoLock(a, ctx, "k") // as the first waiter, and so with a reservation
	locktest.Await(t, func() bool { return kind.Waiting(t, s, "k") == 1 })
	require.NoError(t, e.Unlock(ctx))
	locktest.Got(t, first)
	require.NoError(t, a.Close())
	before := locktest.Lock(t, b, ctx, "k")
	s.Do(t, "FLUSHALL")
	require.ErrorIs(t, before.Unlock(ctx), holdfast.ErrLost)
	after := locktest.Lock(t, b, ctx, "k")
	require.Greater(t, after.Fence(), before.Fence())
	require.NoError(t, after.Unlock(ctx))
}

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
