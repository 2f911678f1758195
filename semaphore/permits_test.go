package semaphore_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/multilock"
)

// Callers that find free permits take them side by side, not one after the other.
func TestFreePermitsAreTakenAtOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		w.net.Trip = 10 * time.Millisecond
		w.loadScripts()
		l := w.open(8)
		var held atomic.Int32
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				lease := locktest.Lock(t, l, context.Background(), "k")
				held.Add(1)
				time.Sleep(time.Minute)
				require.NoError(t, lease.Unlock(context.Background()))
			})
		}
		time.Sleep(70 * time.Millisecond) // three round trips and a half
		require.EqualValues(t, 8, held.Load())
		all.Wait()
	})
}

// Waiters that queue here go from hand to hand in memory, each permit in its own hands.
func TestHandover_OfSeveralPermits(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx := w.open(3), context.Background()
		var all sync.WaitGroup
		var h holders
		owners := sync.Map{}
		for range 30 {
			all.Go(func() {
				for range 50 {
					lease := locktest.Lock(t, l, ctx, "k")
					owners.Store(lease.Owner(), true)
					h.hold(10 * time.Microsecond)
					require.NoError(t, lease.Unlock(ctx))
				}
			})
		}
		all.Wait()
		n := 0
		owners.Range(func(any, any) bool { n++; return true })
		require.Less(t, n, 100, "holds in Redis, of 1500 leases")
		require.EqualValues(t, 3, h.most.Load())
	})
}

// More permits let as many waiters go on at once; fewer take none away.
func TestResize_InUse(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		a, b, ctx := w.open(2), w.open(2), context.Background()
		got := make(chan *holdfast.Lease, 20)
		for range 6 {
			go func() { got <- locktest.Lock(t, a, ctx, "k") }()
			go func() { got <- locktest.Lock(t, b, ctx, "k") }()
		}
		time.Sleep(time.Second)
		require.Len(t, got, 2)
		require.NoError(t, a.Resize(ctx, "k", 7))
		time.Sleep(100 * time.Millisecond)
		require.Len(t, got, 7)
		require.NoError(t, b.Resize(ctx, "k", 3))
		for range 4 {
			require.NoError(t, (<-got).Unlock(ctx))
			time.Sleep(100 * time.Millisecond)
		}
		s := locktest.Must(a.Inspect(ctx, "k"))(t)
		require.Equal(t, 3, s.Permits)
		require.Len(t, s.Holders, 3+len(got)-3)
		require.Len(t, got, 3)
		for range 8 {
			require.NoError(t, (<-got).Unlock(ctx))
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// A nested call re-enters by the bound context; a call without it takes another permit.
func TestNested(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx := w.open(2), context.Background()
		outer := locktest.Lock(t, l, ctx, "k", holdfast.Label("outer"))
		inner := locktest.Lock(t, l, outer.Bind(ctx), "k")
		second := locktest.Lock(t, l, ctx, "k")
		require.ErrorIs(t, locktest.ErrOf(l.TryLock(ctx, "k")), holdfast.ErrNotAcquired)
		s := locktest.Must(l.Inspect(ctx, "k"))(t)
		require.Equal(t, 2, s.Permits)
		require.Equal(t, []any{2, "outer", 2, 1}, []any{len(s.Holders), s.Holders[0].Label, s.Holders[0].Entries, s.Holders[1].Entries})
		require.Equal(t, []string{outer.Owner(), second.Owner()}, []string{s.Holders[0].Owner, s.Holders[1].Owner})
		require.Regexp(t, "^2 of 2 permits taken, .* until one ends, 0 waiting here$", s.String())
		require.Zero(t, outer.Fence())
		require.NoError(t, inner.Unlock(ctx))
		require.NoError(t, outer.Unlock(ctx))
		held := 0
		for status, err := range l.Locks(ctx, "") {
			require.NoError(t, err)
			require.Equal(t, "k", status.Key)
			held += len(status.Holders)
		}
		require.Equal(t, 1, held)
		require.True(t, locktest.Must(l.ForceUnlock(ctx, "k"))(t))
		require.ErrorIs(t, second.Err(), holdfast.ErrLost)
		require.Empty(t, w.server.Redis().Keys())
	})
}

// LockAll takes a permit of each, beside locks of other kinds.
func TestLockAll(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx := w.open(2), context.Background()
		first := locktest.Must(multilock.LockAll(ctx, multilock.Keys(l, "a", "b")))(t)
		second := locktest.Must(multilock.LockAll(ctx, multilock.Keys(l, "a", "b")))(t)
		require.ErrorIs(t, locktest.ErrOf(multilock.TryLockAllFor(ctx, multilock.Keys(l, "a", "b"), time.Second)), holdfast.ErrNotAcquired)
		require.NoError(t, first.Unlock(ctx))
		require.NoError(t, second.Unlock(ctx))
		require.Empty(t, w.server.Redis().Keys())
	})
}
