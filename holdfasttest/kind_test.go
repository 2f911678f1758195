package holdfasttest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// known are the options that the double has.
func known(o locktest.Options) locktest.Options {
	return locktest.Options{Lease: o.Lease, Fencing: o.Fencing, MaxHold: o.MaxHold, MaxWaiters: o.MaxWaiters, MaxOutage: o.MaxOutage}
}

// kind adapts the double to the conformance suite.
var kind = locktest.Kind{
	Name: "holdfasttest",
	New: func(_ rueidis.Client, o locktest.Options) (locktest.Locker, error) {
		return locktest.Opens(holdfasttest.New(known(o)))
	},
	Another: func(l locktest.Locker) locktest.Locker { return l.(*holdfasttest.Locker).Another() },
}

// permits is the double of a semaphore with one permit, which is a mutex.
var permits = locktest.Kind{
	Name: "holdfasttest semaphore", Permits: true,
	New: func(_ rueidis.Client, o locktest.Options) (locktest.Locker, error) {
		o.Fencing = false
		return locktest.Opens(holdfasttest.NewSemaphore(1, known(o)))
	},
	Another: kind.Another,
}

func TestConformance(t *testing.T)        { contract.Run(t, kind.InVirtualTime) }
func TestPermitsConformance(t *testing.T) { contract.Run(t, permits.InVirtualTime) }

func TestSemaphore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locktest.Must(holdfasttest.NewSemaphore(2))(t)
		ctx := context.Background()
		one := locktest.Lock(t, l, ctx, "k", holdfast.Label("one"))
		release := locktest.Must(l.Hold("k"))(t)
		require.ErrorIs(t, locktest.ErrOf(l.TryLock(ctx, "k")), holdfast.ErrNotAcquired)
		inner := locktest.Lock(t, l, one.Bind(ctx), "k")
		s := locktest.Must(l.Inspect(ctx, "k"))(t)
		require.Equal(t, []any{true, 2, 2, "one", 2, 1}, []any{s.Held, s.Permits, len(s.Holders), s.Holders[0].Label, s.Holders[0].Entries, s.Holders[1].Entries})

		got := make(chan *holdfast.Lease, 3)
		for range 3 {
			go func() {
				lease, _ := l.Lock(ctx, "k")
				got <- lease
			}()
		}
		synctest.Wait()
		require.Empty(t, got)
		release()
		synctest.Wait()
		require.Len(t, got, 1)
		require.NoError(t, inner.Unlock(ctx))
		require.NoError(t, l.Lose("k")) // both
		require.ErrorIs(t, one.Err(), holdfast.ErrLost)
		require.ErrorIs(t, (<-got).Err(), holdfast.ErrLost)
		synctest.Wait()
		require.Len(t, got, 2)
		require.NoError(t, (<-got).Unlock(ctx))
		require.True(t, locktest.Must(l.ForceUnlock(ctx, "k"))(t))
		require.ErrorIs(t, (<-got).Err(), holdfast.ErrLost)
		require.ErrorIs(t, l.Lose("k"), holdfasttest.ErrNotHeld)
		s = locktest.Must(l.Inspect(ctx, "k"))(t)
		require.Equal(t, holdfast.Status{Key: "k"}, s, "as in Redis, where nothing is agreed then")

		l.Outage(time.Second)
		require.ErrorIs(t, locktest.ErrOf(l.TryLock(ctx, "k")), holdfast.ErrUnavailable)
		l.Outage(0)
		other := locktest.Lock(t, l, ctx, "k")
		l.Outage(time.Second)
		require.ErrorIs(t, locktest.ErrOf(l.TryLock(ctx, "k")), holdfast.ErrUnavailable) // asks for another permit
		l.Outage(0)
		require.NoError(t, other.Unlock(ctx))
		second := locktest.Lock(t, l, ctx, "k")
		first := locktest.Lock(t, l, ctx, "k", holdfast.FixedLease(time.Second))
		s = locktest.Must(l.Inspect(ctx, "k"))(t)
		require.Equal(t, first.Owner(), s.Owner, "its lease ends first")
		require.Equal(t, []any{time.Second, second.Owner()}, []any{s.Remaining, s.Holders[1].Owner})
		_, err := l.TryLock(ctx, "k") // Redis is asked, and names no locker
		locktest.RequireSentinel(t, err, holdfast.ErrNotAcquired, "held by another")
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, first.Err(), holdfast.ErrLost)
		require.NoError(t, second.Err())
		require.NoError(t, l.Close())
		require.ErrorIs(t, second.Err(), holdfast.ErrClosed)
	})
	for _, n := range []int{0, 10_001} {
		locktest.RequireSentinel(t, locktest.ErrOf(holdfasttest.NewSemaphore(n)), holdfast.ErrInvalidArgument, "NewSemaphore")
	}
	require.ErrorContains(t, locktest.ErrOf(holdfasttest.NewSemaphore(2, holdfast.WithFencing())), "holdfasttest: NewSemaphore: the double has no WithFencing")
}
