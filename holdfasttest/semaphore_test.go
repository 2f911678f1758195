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
		require.ErrorIs(t, err, holdfast.ErrNotAcquired)
		require.ErrorContains(t, err, "held by another")
		time.Sleep(2 * time.Second)
		require.ErrorIs(t, first.Err(), holdfast.ErrLost)
		require.NoError(t, second.Err())
		require.NoError(t, l.Close())
		require.ErrorIs(t, second.Err(), holdfast.ErrClosed)
	})
	for _, n := range []int{0, 10_001} {
		_, err := holdfasttest.NewSemaphore(n)
		require.ErrorContains(t, err, "NewSemaphore")
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
	require.ErrorContains(t, locktest.ErrOf(holdfasttest.NewSemaphore(2, holdfast.WithFencing())), "holdfasttest: NewSemaphore: the double has no WithFencing")
}
