package holdfasttest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// bubble runs f in virtual time with a locker that nobody closes.
func bubble(t *testing.T, f func(t *testing.T, ctx context.Context, l *holdfasttest.Locker), opts ...holdfast.Option) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := locktest.Must(holdfasttest.New(opts...))(t)
		f(t, t.Context(), l)
	})
}

func TestLose(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		err := l.Do(ctx, "k", func(ctx context.Context) error {
			inner := locktest.Lock(t, l, ctx, "k")
			next := locktest.GoLock(l, context.Background(), "k")
			synctest.Wait()
			require.NoError(t, l.Lose("k"))
			require.ErrorIs(t, context.Cause(ctx), holdfast.ErrLost)
			require.EqualError(t, inner.Err(), `holdfast: lease of "k": lease lost: the lease is no longer ours`)
			require.NoError(t, locktest.Got(t, next).Unlock(ctx), "the key is the next waiter's")
			locktest.RequireSentinel(t, inner.Unlock(ctx), holdfast.ErrLost)
			return nil
		})
		locktest.RequireSentinel(t, err, holdfast.ErrLost)

		require.ErrorIs(t, l.Lose("k"), holdfasttest.ErrNotHeld)
		require.EqualError(t, l.Lose(""), `holdfast: lose "": not held by this locker`)
		locktest.Lock(t, l.Another(), ctx, "k")
		require.ErrorIs(t, l.Lose("k"), holdfasttest.ErrNotHeld)
	})
}

func TestHold(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		release := locktest.Must(l.Hold("k"))(t)
		require.EqualError(t, locktest.ErrOf(l.TryLock(ctx, "k")), `holdfast: lock "k": not acquired: held by another`)
		locktest.RequireSentinel(t, locktest.ErrOf(l.Hold("k")), holdfast.ErrNotAcquired)
		require.ErrorContains(t, locktest.ErrOf(l.Hold("")), "key is empty")

		waiting := locktest.GoLock(l, ctx, "k")
		time.Sleep(time.Hour)
		require.Empty(t, waiting, "the other process renews its lease")
		release()
		release()
		lease := locktest.Got(t, waiting)
		release()
		require.NoError(t, lease.Unlock(ctx))

		capped := locktest.Must(holdfasttest.New(holdfast.WithMaxHold(time.Second)))(t)
		require.NoError(t, locktest.ErrOf(capped.Hold("k")))
		time.Sleep(time.Hour)
		locktest.RequireSentinel(t, locktest.ErrOf(capped.TryLock(ctx, "k")), holdfast.ErrNotAcquired)
	})
}

// A lease that is renewed lives through an outage that is shorter than two thirds of it, and
// is lost at its deadline in one that is longer than all of it.
func TestOutage_Leases(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		start := time.Now()
		kept := locktest.Lock(t, l, ctx, "kept")
		time.Sleep(15 * time.Second) // renewed after 10
		require.Equal(t, start.Add(40*time.Second), kept.Deadline())
		l.Outage(20 * time.Second)
		time.Sleep(12 * time.Second)
		require.Equal(t, start.Add(40*time.Second), kept.Deadline(), "no renewal comes")
		require.NoError(t, kept.Err())
		time.Sleep(8 * time.Second)
		require.Equal(t, start.Add(65*time.Second), kept.Deadline(), "a renewal comes at once")

		fixed := locktest.Lock(t, l, ctx, "fixed", holdfast.FixedLease(time.Minute))
		capped := locktest.Lock(t, l, ctx, "capped", holdfast.MaxHold(3*time.Second))
		over := kept.Bind(ctx)
		start = time.Now()
		l.Outage(time.Minute)
		<-capped.Done()
		require.Equal(t, 3*time.Second, time.Since(start))
		require.ErrorContains(t, capped.Err(), "the longest hold is over")
		<-over.Done()
		require.Equal(t, 30*time.Second, time.Since(start))
		require.EqualError(t, context.Cause(over), `holdfast: lease of "kept": lease lost: the lease ran out`)
		require.NoError(t, fixed.Err())
		<-fixed.Done()
		require.Equal(t, time.Minute, time.Since(start))
		for _, lease := range []*holdfast.Lease{kept, capped, fixed} {
			locktest.RequireSentinel(t, lease.Unlock(ctx), holdfast.ErrLost)
			require.NoError(t, locktest.Lock(t, l, ctx, lease.Key()).Unlock(ctx))
		}
	})
}

func TestOutage_Calls(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		mine := locktest.Lock(t, l, ctx, "mine")
		l.Outage(time.Minute)
		start := time.Now()
		require.ErrorContains(t, locktest.ErrOf(l.TryLock(ctx, "mine")), "held by this locker for", "that is known without Redis")
		for name, call := range map[string]func() error{
			"TryLock":     func() error { _, err := l.TryLock(ctx, "k"); return err },
			"Do":          func() error { return l.Do(ctx, "k", nothing, holdfast.WaitAtMost(0)) },
			"nested":      func() error { _, err := l.TryLock(mine.Bind(ctx), "mine"); return err },
			"Inspect":     func() error { _, err := l.Inspect(ctx, "k"); return err },
			"ForceUnlock": func() error { _, err := l.ForceUnlock(ctx, "k"); return err },
			"Hold":        func() error { _, err := l.Hold("k"); return err },
		} {
			locktest.RequireSentinel(t, call(), holdfast.ErrUnavailable)
			require.Equal(t, start, time.Now(), name)
		}
		locktest.RequireSentinel(t, locktest.ErrOf(l.TryLockFor(ctx, "k", time.Second)), holdfast.ErrUnavailable)
		require.Equal(t, time.Second, time.Since(start))
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		_, err := l.Lock(short, "k")
		locktest.RequireSentinel(t, err, holdfast.ErrUnavailable)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = l.Lock(ctx, "k") // for one lease from now on
		locktest.RequireSentinel(t, err, holdfast.ErrUnavailable)
		require.Equal(t, 32*time.Second, time.Since(start))
		require.NoError(t, locktest.Lock(t, l, ctx, "k").Unlock(ctx))
		require.Equal(t, time.Minute, time.Since(start), "it waited for the end")
	})
}

// A wait that begins before the outage may last for WithMaxOutage from its start.
func TestOutage_BeginsDuringAWait(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		release := locktest.Must(l.Hold("k"))(t)
		waiting := locktest.GoLock(l, ctx, "k")
		time.Sleep(time.Minute)
		l.Outage(time.Hour)
		start := time.Now()
		a := <-waiting
		locktest.RequireSentinel(t, a.Err, holdfast.ErrUnavailable)
		require.Equal(t, 5*time.Second, time.Since(start))
		release()
		l.Outage(0)
		l.Outage(-1)
		require.NoError(t, locktest.Lock(t, l, ctx, "k").Unlock(ctx))
		require.Equal(t, 5*time.Second, time.Since(start))
	}, holdfast.WithMaxOutage(5*time.Second))
}

// The entry ends at once, and Redis is told when it is back.
func TestOutage_Unlock(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		waits, leaves, lasts := locktest.Lock(t, l, ctx, "waits"), locktest.Lock(t, l, ctx, "leaves"), locktest.Lock(t, l, ctx, "lasts", holdfast.FixedLease(time.Second))
		inner := locktest.Lock(t, l, waits.Bind(ctx), "waits")
		l.Outage(10 * time.Second)
		start := time.Now()
		locktest.RequireSentinel(t, inner.Unlock(ctx), holdfast.ErrUnknown)
		over := locktest.Over(ctx)
		err := leaves.Unlock(over)
		locktest.RequireSentinel(t, err, holdfast.ErrUnknown)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, leaves.Err(), holdfast.ErrReleased)
		require.Equal(t, start, time.Now())
		locktest.RequireSentinel(t, lasts.Unlock(ctx), holdfast.ErrUnknown)
		require.Equal(t, time.Second, time.Since(start), "it had run out then")
		next := locktest.GoLock(l, ctx, "leaves")
		require.NoError(t, waits.Unlock(ctx))
		require.NoError(t, locktest.Got(t, next).Unlock(ctx))
		require.Equal(t, 10*time.Second, time.Since(start))
		locktest.RequireSentinel(t, waits.Unlock(ctx), holdfast.ErrReleased)
	})
}

// A Do whose work is done is not failed by the outage in which it ends.
func TestOutage_Do(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		ctx, cancel := context.WithCancel(ctx)
		require.NoError(t, l.Do(ctx, "k", func(bound context.Context) error {
			return l.Do(bound, "k", func(context.Context) error {
				l.Outage(time.Second)
				cancel()
				return nil
			})
		}))
		require.NoError(t, locktest.Lock(t, l, context.Background(), "k").Unlock(context.Background()))
		require.ErrorIs(t, l.Do(context.Background(), "k", func(ctx context.Context) error {
			l.Outage(time.Hour)
			<-ctx.Done()
			return nil
		}), holdfast.ErrLost)
	})
}

func TestOutage_Nested(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		outer := locktest.Lock(t, l, ctx, "k")
		l.Outage(time.Second)
		inner := locktest.Lock(t, l, outer.Bind(ctx), "k")
		require.NoError(t, inner.Unlock(ctx))

		l.Outage(time.Hour)
		lost := locktest.GoLock(l, context.WithoutCancel(outer.Bind(ctx)), "k")
		<-outer.Done()
		locktest.RequireSentinel(t, (<-lost).Err, holdfast.ErrLost)
	}, holdfast.WithMaxOutage(time.Hour))
}

func TestOutage_Close(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		other := l.Another()
		held, unlocking := locktest.Lock(t, l, ctx, "held"), locktest.Lock(t, l, ctx, "unlocking")
		l.Outage(time.Hour)
		start := time.Now()
		unlocked := locktest.Go(func() error { return unlocking.Unlock(ctx) })
		synctest.Wait()
		require.EqualError(t, l.Close(), "holdfast: close: outcome unknown: 2 holds were not released: outage of holdfasttest")
		require.ErrorIs(t, held.Err(), holdfast.ErrClosed)
		locktest.RequireSentinel(t, <-unlocked, holdfast.ErrUnknown)
		require.NoError(t, l.Close())
		require.Equal(t, start, time.Now())
		l.Outage(time.Second)
		require.NoError(t, locktest.Lock(t, other, ctx, "held").Unlock(ctx))
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestOnPlace(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.Locker) {
		release := locktest.Must(l.Hold("k"))(t)
		first := locktest.GoLock(l.Another(), ctx, "k")
		synctest.Wait()
		var places []int
		second := locktest.GoLock(l, ctx, "k", holdfast.OnPlace(func(place int) { places = append(places, place) }))
		synctest.Wait()
		require.Equal(t, []int{2}, places)
		require.PanicsWithValue(t, 3, func() { _, _ = l.Lock(ctx, "k", holdfast.OnPlace(func(place int) { panic(place) })) })
		release()
		lease := locktest.Got(t, first)
		synctest.Wait()
		require.Equal(t, []int{2, 1}, places)
		require.NoError(t, lease.Unlock(ctx))
		require.NoError(t, locktest.Got(t, second).Unlock(ctx))
		require.NoError(t, locktest.Lock(t, l, ctx, "k").Unlock(ctx), "the call that panicked has gone")
	})
}

func nothing(context.Context) error { return nil }
