package semaphore_test

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// A burst that once took all permits is over soon, although callers keep coming: they need a
// quarter of the permits, but more of them come than one after another could take.
func TestG4_ABurstIsOver(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		w.net.Trip = time.Millisecond // a round trip takes 2, in which two callers come
		w.loadScripts()
		l, ctx := w.open(200), context.Background()
		var all sync.WaitGroup
		var longest time.Duration
		for i := range 2000 {
			callers := 1
			if i == 300 {
				callers = 250
			}
			for range callers {
				all.Go(func() {
					began := time.Now()
					lease := locktest.Lock(t, l, ctx, "k")
					if i == 1999 {
						longest = time.Since(began)
					}
					time.Sleep(50 * time.Millisecond)
					require.NoError(t, lease.Unlock(ctx))
				})
			}
			time.Sleep(time.Millisecond)
		}
		all.Wait()
		require.Less(t, longest, 10*time.Millisecond)
	})
}

// Each process that waits gets permits again and again, whoever has them.
func TestG4_NoProcessStarves(t *testing.T) {
	for _, n := range []int{1, 3, 8} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, w *world) {
				const processes = 4
				var longest [processes]time.Duration
				var served [processes]int
				var mu sync.Mutex
				var all sync.WaitGroup
				end := time.Now().Add(time.Second)
				for p := range processes {
					l, last := w.open(n), time.Now()
					for range 12 {
						all.Go(func() {
							for time.Now().Before(end) {
								lease := locktest.Lock(t, l, context.Background(), "k")
								mu.Lock()
								longest[p], last = max(longest[p], time.Since(last)), time.Now()
								served[p]++
								mu.Unlock()
								time.Sleep(time.Duration(1+p) * time.Millisecond)
								require.NoError(t, lease.Unlock(context.Background()))
							}
						})
					}
				}
				all.Wait()
				t.Log(n, served, longest)
				for p := range processes {
					require.Less(t, longest[p], 200*time.Millisecond, "%v of %v", longest, served)
					require.Greater(t, served[p], slices.Max(served[:])/10, served)
				}
			})
		})
	}
}

// A process that has permits and waiters, beside one that has permits and listens but wants no
// more, uses what it gives back.
func TestG4_IdleListenersDelayNobody(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		idle, busy, ctx := w.open(2), w.open(2), context.Background()
		one := locktest.Lock(t, idle, ctx, "k")
		two := locktest.Lock(t, idle, ctx, "k")
		leaves, cancel := context.WithCancel(ctx)
		gone := locktest.Go(func() error { return locktest.ErrOf(idle.Lock(leaves, "k")) })
		defer func() { cancel(); <-gone }()
		time.Sleep(time.Second)
		require.NoError(t, one.Unlock(ctx)) // its waiter takes that
		var cycles atomic.Int32
		stop := time.Now().Add(time.Second)
		require.NoError(t, two.Unlock(ctx))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for time.Now().Before(stop) {
					if lease, err := busy.TryLockFor(ctx, "k", 2*time.Second); err == nil {
						cycles.Add(1)
						time.Sleep(20 * time.Millisecond) // longer than a tenure
						require.NoError(t, lease.Unlock(ctx))
					}
				}
			})
		}
		all.Wait()
		require.Greater(t, cycles.Load(), int32(25))
	})
}

// A hold of this locker turns out to be lost, of which no message tells: its waiters try at once.
func TestG4_WaitersTryAfterALoss(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx, began := w.open(1), context.Background(), time.Now()
		lease := locktest.Lock(t, l, ctx, "k")
		got := make(chan *holdfast.Lease, 1)
		go func() { got <- locktest.Lock(t, l, ctx, "k") }()
		time.Sleep(time.Second)
		w.server.Do(t, "FLUSHALL")
		next := <-got
		require.ErrorIs(t, lease.Err(), holdfast.ErrLost)
		require.Less(t, time.Since(began), holdfast.DefaultLease/2, "the renewal finds out, after a third of the lease")
		require.NoError(t, next.Unlock(ctx))
	})
}
