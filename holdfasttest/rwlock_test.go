package holdfasttest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/contract"
)

// writers and readers adapt the halves of the double.
var (
	writers = locktest.Kind{
		Name: "holdfasttest writers", ReadWrite: true,
		New: func(_ rueidis.Client, o locktest.Options) (locktest.Locker, error) {
			return locktest.Opens(holdfasttest.NewRWLock(known(o)))
		},
		Another: func(l locktest.Locker) locktest.Locker { return l.(*holdfasttest.RWLock).Another() },
	}
	readers = locktest.Kind{
		Name: "holdfasttest readers", ReadWrite: true, Shared: true,
		New: func(_ rueidis.Client, o locktest.Options) (locktest.Locker, error) {
			l, err := holdfasttest.NewRWLock(known(o))
			if err != nil {
				return nil, err
			}
			return l.RLocker(), nil
		},
		Another: kind.Another,
	}
)

func TestWritersConformance(t *testing.T) { contract.Run(t, writers.InVirtualTime) }
func TestReadersConformance(t *testing.T) { contract.Run(t, readers.InVirtualTime) }

// inBubble runs a test of a read/write lock.
func inBubble(t *testing.T, f func(t *testing.T, ctx context.Context, l *holdfasttest.RWLock)) {
	synctest.Test(t, func(t *testing.T) {
		l := locktest.Must(holdfasttest.NewRWLock(holdfast.WithFencing()))(t)
		f(t, context.Background(), l)
		require.NoError(t, l.Close())
	})
}

// waits locks in a goroutine, which waits when waits returns.
func waits(t *testing.T, l holdfast.Locker) <-chan *holdfast.Lease {
	got := make(chan *holdfast.Lease, 1)
	go func() {
		lease, _ := l.Lock(context.Background(), "k")
		got <- lease
	}()
	synctest.Wait()
	require.Empty(t, got)
	return got
}

func TestReadersShareAndWritersTakeTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.RWLock) {
		r := locktest.Lock(t, l.RLocker(), ctx, "k", holdfast.Label("me"))
		require.ErrorIs(t, locktest.ErrOf(l.TryLock(ctx, "k")), holdfast.ErrNotAcquired)
		release := locktest.Must(l.RLocker().Hold("k"))(t)
		s := locktest.Must(l.Inspect(ctx, "k"))(t)
		require.Equal(t, []any{true, "read", 2, "me", r.Owner()}, []any{s.Held, s.Mode, s.Readers, s.Label, s.Owner})

		first, second := waits(t, l), waits(t, l.Another())
		require.ErrorIs(t, locktest.ErrOf(l.RLocker().TryLock(ctx, "k")), holdfast.ErrNotAcquired, "a writer waits")
		late, later := waits(t, l.RLocker()), waits(t, l.Another().RLocker())
		release()
		synctest.Wait()
		require.Empty(t, first)
		require.NoError(t, r.Unlock(ctx))
		w := <-first
		require.Greater(t, w.Fence(), r.Fence())
		s = locktest.Must(l.Inspect(ctx, "k"))(t)
		require.Equal(t, []any{"write", 0, w.Owner()}, []any{s.Mode, s.Readers, s.Owner})
		synctest.Wait()
		require.Empty(t, second)
		require.Empty(t, late)

		require.NoError(t, w.Unlock(ctx)) // the readers go before the next writer
		a, b := <-late, <-later
		third := waits(t, l.RLocker()) // behind it
		require.Empty(t, second)
		require.NoError(t, a.Unlock(ctx))
		require.NoError(t, b.Unlock(ctx))
		require.NoError(t, (<-second).Unlock(ctx))
		require.NoError(t, (<-third).Unlock(ctx))
	})
}

func TestReadersGoOnWhenTheWriterGivesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.RWLock) {
		locktest.Lock(t, l.RLocker(), ctx, "k")
		began := time.Now()
		go func() { _, _ = l.TryLockFor(ctx, "k", time.Second) }()
		synctest.Wait()
		locktest.Lock(t, l.RLocker(), ctx, "k")
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestDowngradeAndUpgrade(t *testing.T) {
	inBubble(t, func(t *testing.T, ctx context.Context, l *holdfasttest.RWLock) {
		w := locktest.Lock(t, l, ctx, "k")
		r := locktest.Must(l.RLocker().TryLock(w.Bind(ctx), "k", holdfast.MaxHold(time.Hour)))(t)
		require.Equal(t, w.Fence(), r.Fence())
		require.NotEqual(t, w.Owner(), r.Owner())
		both := r.Bind(w.Bind(ctx))
		inner := locktest.Must(l.TryLock(both, "k"))(t) // it writes still
		require.NoError(t, inner.Unlock(ctx))
		inner = locktest.Must(l.RLocker().TryLock(both, "k"))(t)
		require.Equal(t, r.Owner(), inner.Owner())
		require.NoError(t, inner.Unlock(ctx))
		s := locktest.Must(l.Inspect(ctx, "k"))(t)
		require.Equal(t, []any{"write", 1, w.Owner()}, []any{s.Mode, s.Readers, s.Owner})

		reads, writes := waits(t, l.RLocker()), waits(t, l)
		require.NoError(t, w.Unlock(ctx))
		beside := <-reads
		require.NoError(t, r.Err())
		require.Empty(t, writes)
		for _, bound := range []context.Context{r.Bind(ctx), context.WithoutCancel(both)} {
			require.ErrorIs(t, locktest.ErrOf(l.Lock(bound, "k")), holdfast.ErrUpgrade)
		}
		require.ErrorIs(t, locktest.ErrOf(l.RLocker().Lock(w.Bind(ctx), "k")), holdfast.ErrReleased)
		require.NoError(t, l.RLocker().Lose("k"))
		require.ErrorIs(t, r.Err(), holdfast.ErrLost)
		require.ErrorIs(t, beside.Err(), holdfast.ErrLost)
		next := <-writes
		require.ErrorIs(t, l.RLocker().Lose("k"), holdfasttest.ErrNotHeld)
		require.True(t, locktest.Must(l.ForceUnlock(ctx, "k"))(t))
		require.ErrorIs(t, next.Err(), holdfast.ErrLost)
	})
	require.ErrorContains(t, locktest.ErrOf(holdfasttest.NewRWLock(holdfast.WithPrefix("p"))), "holdfasttest: NewRWLock: the double has no WithPrefix")
}

func TestInspectCountsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := locktest.Must(holdfasttest.NewRWLock())(t)
		contract.CountsReaders(t, l, l.RLocker(), l.Another().RLocker())
	})
}
