package semaphore_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/semaphore"
)

// N releases serve N waiters, however the waiters are spread over processes.
func TestG4_ReleasesWakeAsManyWaiters(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		holder, ctx := w.open(6), context.Background()
		var leases []*holdfast.Lease
		for range 6 {
			leases = append(leases, locktest.Lock(t, holder, ctx, "k"))
		}
		got := make(chan *holdfast.Lease, 20)
		for _, waiters := range []int{1, 3, 6} {
			l := w.open(6)
			for range waiters {
				go func() { got <- locktest.Lock(t, l, ctx, "k") }()
			}
		}
		time.Sleep(time.Second)
		require.Empty(t, got)
		for _, l := range leases[:4] {
			go func() { _ = l.Unlock(ctx) }()
		}
		time.Sleep(100 * time.Millisecond)
		require.Len(t, got, 4)
		require.NoError(t, leases[4].Unlock(ctx))
		require.NoError(t, leases[5].Unlock(ctx))
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			require.NotEmpty(t, got)
			require.NoError(t, (<-got).Unlock(ctx))
		}
	})
}

// N permits that are given back at once serve N waiters of one process in about log2 N round trips,
// whatever each of them asks for.
func TestG4_ReleasesServeACrowd(t *testing.T) {
	for name, opts := range map[string][]holdfast.LockOption{"plain": nil, "labels": {holdfast.Label("crowd")}} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, w *world) {
				w.net.Trip = 10 * time.Millisecond // a round trip takes 20
				w.loadScripts()
				const n = 60
				holder, waiting, ctx := w.open(n), w.open(n), context.Background()
				var leases []*holdfast.Lease
				for range n {
					leases = append(leases, locktest.Lock(t, holder, ctx, "k"))
				}
				var served atomic.Int32
				var all sync.WaitGroup
				for range 2 * n {
					all.Go(func() {
						lease := locktest.Lock(t, waiting, ctx, "k", opts...)
						served.Add(1)
						time.Sleep(time.Minute)
						require.NoError(t, lease.Unlock(ctx))
					})
				}
				time.Sleep(time.Second)
				require.Zero(t, served.Load())
				for _, l := range leases {
					go func() { _ = l.Unlock(ctx) }()
				}
				time.Sleep(300 * time.Millisecond)
				require.EqualValues(t, n, served.Load())
				all.Wait()
				require.Empty(t, w.server.Redis().Keys())
			})
		})
	}
}

// Permits that are given back one after another, a few in each round trip, cost few attempts in vain.
func TestG4_FewAttemptsAreInVain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		w.net.Trip = 5 * time.Millisecond
		w.loadScripts()
		const n = 60
		var asked atomic.Int32
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr()) // a round trip through it takes 20
		proxy.OnRequest(func(cmd []string) redistest.Verdict {
			if locktest.Is("acquire")(cmd) {
				keys := locktest.Must(strconv.Atoi(cmd[2]))(t)
				asked.Add(int32(keys / 3))
			}
			return redistest.Pass
		})
		waiting := locktest.Must(semaphore.New(w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), n))(t)
		holder, ctx := w.open(n), context.Background()
		var leases []*holdfast.Lease
		for range n {
			leases = append(leases, locktest.Lock(t, holder, ctx, "k"))
		}
		got := make(chan error, 2*n)
		for range 2 * n {
			go func() { got <- locktest.ErrOf(waiting.Lock(ctx, "k")) }()
		}
		time.Sleep(time.Second)
		require.Empty(t, got)
		asked.Store(0)
		for _, l := range leases {
			go func() { _ = l.Unlock(ctx) }()
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.Len(t, got, n)
		require.Less(t, asked.Load(), int32(3*n))
		require.NoError(t, waiting.Close())
	})
}

// A user that may not subscribe hears of no release; those of its own process serve its waiters.
func TestG4_OwnReleasesNeedNoMessage(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr())
		proxy.OnRequest(redistest.Always(locktest.Is("subscribe"), redistest.Hold))
		client := w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })
		l := locktest.Opened(semaphore.New(client, 2, holdfast.WithLocalHandover(0)))(t)
		ctx := context.Background()
		one, two := locktest.Lock(t, l, ctx, "k"), locktest.Lock(t, l, ctx, "k")
		got := make(chan *holdfast.Lease, 2)
		for range 2 {
			go func() { got <- locktest.Lock(t, l, ctx, "k") }()
		}
		time.Sleep(20*time.Second + 500*time.Millisecond) // between two probes
		require.Empty(t, got)
		require.NoError(t, one.Unlock(ctx))
		time.Sleep(10 * time.Millisecond)
		require.Len(t, got, 1)
		require.NoError(t, two.Unlock(ctx))
		time.Sleep(10 * time.Millisecond)
		require.Len(t, got, 2)
		require.NoError(t, (<-got).Unlock(ctx))
		require.NoError(t, (<-got).Unlock(ctx))
	})
}

// Attempts side by side whose replies are lost leave no permit taken.
func TestF7_AttemptsSideBySideAreUndone(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		w.net.Trip = time.Millisecond
		w.loadScripts()
		const n = 16
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr())
		waiting := locktest.Must(semaphore.New(w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), n))(t)
		holder, ctx := w.open(n), context.Background()
		var leases []*holdfast.Lease
		for range n {
			leases = append(leases, locktest.Lock(t, holder, ctx, "k"))
		}
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				require.NoError(t, locktest.Lock(t, waiting, ctx, "k", holdfast.FixedLease(time.Hour)).Unlock(ctx))
			})
		}
		time.Sleep(time.Second)
		lost := proxy.SwallowReply(4, locktest.Is("acquire")) // the first two succeed, one after the other
		for _, l := range leases {
			go func() { _ = l.Unlock(ctx) }()
		}
		<-lost
		all.Wait()
		time.Sleep(time.Minute)
		require.Empty(t, locktest.Must(holder.Inspect(ctx, "k"))(t).Holders)
		require.NoError(t, waiting.Close())
	})
}
