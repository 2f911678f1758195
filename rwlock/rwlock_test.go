package rwlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/contract"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/rwlock"
)

// A writer waits for all readers, of its own process too, and readers for it.
func TestG1_AWriterIsAlone(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		unshared := holdfast.WithLocalHandover(0)
		l, other := userLocker(t, s, unshared), userLocker(t, s, unshared)
		ctx := t.Context()
		for range 3 {
			a, b := locktest.Lock(t, l.RLocker(), ctx, "k"), locktest.Lock(t, other.RLocker(), ctx, "k")
			writes := locktest.GoLock(l, ctx, "k")
			locktest.Await(t, func() bool { return waits(t, s, "k", "writer") == 1 })
			reads := locktest.GoLock(l.RLocker(), ctx, "k") // later than the writer
			elsewhere := locktest.GoLock(other.RLocker(), ctx, "k")
			locktest.Await(t, func() bool { return waits(t, s, "k", "reader") == 2 })
			require.NoError(t, a.Unlock(ctx))
			require.Empty(t, writes)
			w := locktest.Next(t, b, writes)
			require.ErrorIs(t, locktest.ErrOf(other.RLocker().TryLock(ctx, "k")), holdfast.ErrNotAcquired)
			require.Empty(t, reads)
			a, b = locktest.Next(t, w, reads), locktest.Got(t, elsewhere)
			require.NoError(t, a.Unlock(ctx))
			require.NoError(t, b.Unlock(ctx))
		}
		locktest.Await(t, func() bool { return locktest.Number(t, s, "DBSIZE") == 0 })
	})
}

// The readers of all processes that wait for a writer go in before the next writer.
func TestG4_ReadersGoBeforeTheNextWriter(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		ctx := t.Context()
		l, other, third := userLocker(t, s, holdfast.WithLocalHandover(0)), userLocker(t, s), userLocker(t, s)
		w := locktest.Lock(t, l, ctx, "k")
		next := locktest.GoLock(l, ctx, "k")
		elsewhere := locktest.GoLock(third, ctx, "k")
		readers := []<-chan locktest.Acquired{locktest.GoLock(l.RLocker(), ctx, "k"), locktest.GoLock(other.RLocker(), ctx, "k"), locktest.GoLock(other.RLocker(), ctx, "k")}
		locktest.Await(t, func() bool { return waits(t, s, "k", "reader") == 2 && waits(t, s, "k", "writer") == 1 })
		require.NoError(t, w.Unlock(ctx))
		var leases []*holdfast.Lease
		for _, reader := range readers {
			leases = append(leases, locktest.Got(t, reader))
		}
		require.Empty(t, next)
		require.Empty(t, elsewhere)
		for _, lease := range leases {
			require.NoError(t, lease.Unlock(ctx))
		}
		select {
		case a := <-next:
			require.NoError(t, a.Err)
			require.NoError(t, a.Lease.Unlock(ctx))
			require.NoError(t, locktest.Got(t, elsewhere).Unlock(ctx))
		case a := <-elsewhere:
			require.NoError(t, a.Err)
			require.NoError(t, a.Lease.Unlock(ctx))
			require.NoError(t, locktest.Got(t, next).Unlock(ctx))
		}
	})
}

// A wish ends with the last writer that waits: readers go on at once.
func TestG4_AWriterGivesUp(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l, other := userLocker(t, s, holdfast.WithLocalHandover(0)), userLocker(t, s, holdfast.WithLocalHandover(0))
		ctx := t.Context()
		a := locktest.Lock(t, l.RLocker(), ctx, "k")
		gone, cancel := context.WithCancel(ctx)
		writes := locktest.GoLock(other, gone, "k")
		locktest.Await(t, func() bool { return waits(t, s, "k", "writer") == 1 })
		require.ErrorIs(t, locktest.ErrOf(other.RLocker().TryLock(ctx, "k")), holdfast.ErrNotAcquired)
		reads := locktest.GoLock(other.RLocker(), ctx, "k")
		locktest.Await(t, func() bool { return waits(t, s, "k", "reader") == 1 })
		given := time.Now()
		cancel()
		require.ErrorIs(t, locktest.Within(t, writes).Err, context.Canceled)
		b := locktest.Got(t, reads)
		require.Less(t, time.Since(given), 10*time.Millisecond, "neither the end of the wish nor a look each second")
		locktest.Await(t, func() bool { return locktest.Number(t, s, "EXISTS", "holdfast_wishes:{k}") == 0 })
		require.NoError(t, a.Unlock(ctx))
		require.NoError(t, b.Unlock(ctx))
	})
}

// Writers of one process whose leases run out have had their turns all the same: a writer and a reader
// of others get theirs.
func TestG4_TurnsThatRunOut(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l, other, third := userLocker(t, s), userLocker(t, s), userLocker(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					if lease, err := l.Lock(ctx, "k", holdfast.FixedLease(time.Second)); err == nil {
						<-lease.Done()
					}
				}
			})
		}
		time.Sleep(5 * time.Second)
		inTime, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		all.Go(func() { assert.NoError(t, locktest.Cycle(other, inTime, "k")) })
		assert.NoError(t, locktest.Cycle(third.RLocker(), inTime, "k"))
		<-inTime.Done()
		cancel()
		all.Wait()
	})
}

// A wish ends with the turn of its writer, also when its lease runs out: a lock that is free then is
// nobody's turn.
func TestG4_AWishEndsWithTheTurn(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l, other := userLocker(t, s), userLocker(t, s)
		first := locktest.Lock(t, l, t.Context(), "k")
		waits := locktest.GoLock(other, t.Context(), "k", holdfast.FixedLease(time.Second))
		time.Sleep(time.Second)
		last := locktest.Next(t, first, waits)
		<-last.Done()
		locktest.Await(t, func() bool { return locktest.Number(t, s, "EXISTS", "k") == 0 })
		require.NoError(t, locktest.Must(l.RLocker().TryLock(t.Context(), "k"))(t).Unlock(t.Context()))
	})
}

// While a writer of this process waits, a hold of its readers is shared for a tenure at most.
func TestG4_AWaitingWriterEndsSharing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l := userLocker(t, s)
		ctx := t.Context()
		r := locktest.Lock(t, l.RLocker(), ctx, "k")
		writes := locktest.GoLock(l, ctx, "k")
		locktest.Await(t, func() bool { return waits(t, s, "k", "writer") == 1 })
		locktest.Await(t, func() bool { // after a tenure
			another, err := l.RLocker().TryLock(ctx, "k")
			if err == nil {
				require.NoError(t, another.Unlock(ctx))
			}
			return errors.Is(err, holdfast.ErrNotAcquired)
		})
		require.NoError(t, locktest.Next(t, r, writes).Unlock(ctx))
	})
}

// An observer is told how many callers wait, readers and writers together.
func TestObserve_WaitersOfBothHalves(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		var told []int
		l := userLocker(t, s, holdfast.WithObserver(holdfast.Observer{Waiters: func(e holdfast.WaitersEvent) { told = append(told, e.Waiting) }}))
		w := locktest.Lock(t, l, t.Context(), "k")
		var waits []<-chan locktest.Acquired
		for _, half := range []holdfast.Locker{l.RLocker(), l.RLocker(), l} {
			waits = append(waits, locktest.GoLock(half, t.Context(), "k"))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		require.Equal(t, []int{1, 2, 3}, told)
		require.NoError(t, w.Unlock(t.Context()))
		readers := []*holdfast.Lease{locktest.Got(t, waits[0]), locktest.Got(t, waits[1])}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []int{1, 2, 3, 2, 1}, told, "the writer waits")
		for _, r := range readers {
			require.NoError(t, r.Unlock(t.Context()))
		}
		require.NoError(t, locktest.Got(t, waits[2]).Unlock(t.Context()))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, []int{1, 2, 3, 2, 1, 0}, told)
	})
}

// Readers reserve no numbers: else what one gives back could lie below that of another.
func TestG10_AWriterIsAfterAllReaders(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		opts := []holdfast.Option{holdfast.WithFencing(), holdfast.WithLocalHandover(time.Second)}
		w, a, b := userLocker(t, s, opts...), userLocker(t, s, opts...), userLocker(t, s, opts...)
		ctx := t.Context()
		before := locktest.Lock(t, w, ctx, "k")
		waiting := []<-chan locktest.Acquired{locktest.GoLock(a.RLocker(), ctx, "k"), locktest.GoLock(b.RLocker(), ctx, "k")}
		locktest.Await(t, func() bool { return waits(t, s, "k", "reader") == 2 })
		require.NoError(t, before.Unlock(ctx))
		first, last := locktest.Got(t, waiting[0]), locktest.Got(t, waiting[1])
		if first.Fence() > last.Fence() {
			first, last = last, first
		}
		require.Greater(t, first.Fence(), before.Fence())
		require.NoError(t, last.Unlock(ctx))
		require.NoError(t, first.Unlock(ctx))
		after := locktest.Lock(t, w, ctx, "k")
		require.Greater(t, after.Fence(), last.Fence())
		require.NoError(t, after.Unlock(ctx))
	})
}

// A writer may read, and release; others read beside it then.
func TestDowngrade(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l, other := userLocker(t, s, holdfast.WithFencing(), holdfast.WithLocalHandover(20*time.Second)), userLocker(t, s, holdfast.WithFencing())
		ctx := t.Context()
		w := locktest.Lock(t, l, ctx, "k")
		waiting := locktest.GoLock(l, ctx, "k") // a handover to it would be beside the reader
		blocked := locktest.GoLock(l.RLocker(), ctx, "k")
		locktest.Await(t, func() bool { return waits(t, s, "k", "reader") == 1 })
		r := locktest.Lock(t, l.RLocker(), w.Bind(ctx), "k")
		require.Equal(t, w.Fence(), r.Fence())
		again := locktest.Lock(t, l.RLocker(), r.Bind(w.Bind(ctx)), "k")
		inner := locktest.Lock(t, l, w.Bind(r.Bind(ctx)), "k")
		require.Equal(t, w.Owner(), inner.Owner())
		require.NoError(t, inner.Unlock(ctx))
		require.NoError(t, again.Unlock(ctx))
		status := locktest.Must(other.Inspect(ctx, "k"))(t)
		require.Equal(t, []any{"write", 1, w.Owner()}, []any{status.Mode, status.Readers, status.Owner})
		bound := r.Bind(w.Bind(ctx))
		require.NoError(t, w.Unlock(ctx))
		beside := locktest.Got(t, blocked)
		require.Greater(t, beside.Fence(), r.Fence())
		require.Empty(t, waiting)
		require.Error(t, locktest.ErrOf(l.Lock(bound, "k")))
		require.ErrorIs(t, locktest.ErrOf(l.Lock(r.Bind(ctx), "k")), holdfast.ErrUpgrade)
		require.NoError(t, beside.Unlock(ctx))
		next := locktest.Next(t, r, waiting)
		require.Greater(t, next.Fence(), beside.Fence())
		require.NoError(t, next.Unlock(ctx))
		require.ErrorIs(t, locktest.ErrOf(l.RLocker().Lock(w.Bind(ctx), "k")), holdfast.ErrReleased)
	})
}

func TestInspect_CountsReaders(t *testing.T) {
	s := redistest.Start(t)
	l, other := userLocker(t, s), userLocker(t, s)
	contract.CountsReaders(t, l, l.RLocker(), other.RLocker())
}

// A writer's hold is not handed over while a reader is beside it.
func TestG1_NoHandoverBesideAReader(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l := userLocker(t, s, holdfast.WithLocalHandover(20*time.Second))
		ctx := t.Context()
		w := locktest.Lock(t, l, ctx, "k")
		telling := &locktest.TellingContext{Context: ctx, Waiting: make(chan struct{})}
		next := locktest.GoLock(l, telling, "k")
		locktest.Within(t, telling.Waiting)
		r := locktest.Lock(t, l.RLocker(), w.Bind(ctx), "k")
		require.NoError(t, w.Unlock(ctx))
		locktest.Await(t, func() bool { return waits(t, s, "k", "writer") == 1 || len(next) == 1 })
		require.Empty(t, next)
		require.Equal(t, "read", locktest.Must(l.Inspect(ctx, "k"))(t).Mode)
		require.NoError(t, locktest.Next(t, r, next).Unlock(ctx))
	})
}

// While Redis hangs, both halves use up the time of Close together.
func TestG7_CloseOfBothHalvesTakesTheTimeOfOne(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		l := locktest.Must(rwlock.New(s.Client(t), holdfast.WithLease(6*time.Second)))(t)
		locktest.Lock(t, l, t.Context(), "written")
		locktest.Lock(t, l.RLocker(), t.Context(), "read")
		s.Pause()
		defer s.Resume()
		began := time.Now()
		err := l.Close()
		locktest.RequireSentinel(t, err, holdfast.ErrUnknown, `"written"`)
		require.ErrorContains(t, err, `"read"`)
		require.Less(t, time.Since(began), 5*time.Second, "two calls take 4 s")
	})
}

// One warning says that Redis may evict locks, and not one for each half.
func TestF31_EvictionIsWarnedAboutOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, s *sim.Server) {
		s.Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
		var log redistest.Log
		l := locktest.Must(rwlock.New(s.Client(t), holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
		require.NoError(t, locktest.Cycle(l, t.Context(), "k"))
		require.NoError(t, locktest.Cycle(l.RLocker(), t.Context(), "k"))
		require.NoError(t, l.Close()) // waits for the check of the policy
		require.Equal(t, 1, strings.Count(log.String(), "policy=allkeys-lru"), log.String())
	})
}

// The Unlock of a nested entry first waits for an earlier nested call, which Redis answers late. Both waits
// together take no longer than one call may, unless the context lasts longer.
func TestG9_ANestedUnlockWaitsForTheTimeOfOneCall(t *testing.T) {
	for name, patient := range map[string]bool{"ctx has ended": false, "ctx lasts": true} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, s *sim.Server) {
				proxy := s.Proxy(t)
				l := locktest.Opened(rwlock.New(s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })))(t)
				outer := locktest.Lock(t, l, t.Context(), "k")
				bound := outer.Bind(t.Context())
				inner := locktest.Lock(t, l, bound, "k")
				hook, held := locktest.Holding("set_entries")
				proxy.OnRequest(hook)
				earlier := locktest.GoLock(l, bound, "k")
				locktest.Within(t, held)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if !patient {
					cancel()
				}
				began := time.Now()
				unlocked := locktest.Go(func() error { return inner.Unlock(ctx) })
				time.Sleep(4 * time.Second)
				proxy.Release() // the hook holds the next one
				locktest.Got(t, earlier)
				if patient {
					time.Sleep(4 * time.Second)
					proxy.Release()
					require.NoError(t, <-unlocked)
				} else {
					err := <-unlocked
					require.ErrorIs(t, err, holdfast.ErrUnknown)
					require.ErrorIs(t, err, context.Canceled)
					require.LessOrEqual(t, time.Since(began), 6250*time.Millisecond)
				}
				proxy.OnRequest(nil)
				proxy.Release()
				require.NoError(t, outer.Unlock(t.Context()))
			})
		})
	}
}
