package semaphore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/semaphore"
)

// A holder that is paused for longer than its lease has lost it, and its late renewal changes nothing.
func TestF2_PausedHolder(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr())
		client := w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })
		paused, err := semaphore.New(client, 2, holdfast.WithLease(3*time.Second))
		require.NoError(t, err)
		defer paused.Close()
		other, ctx := w.open(2, holdfast.WithLease(3*time.Second)), context.Background()
		first, second := locktest.Lock(t, paused, ctx, "k"), locktest.Lock(t, other, ctx, "k")
		hook, held := locktest.Holding("renew")
		proxy.OnRequest(hook)
		<-held
		<-first.Done()
		require.ErrorIs(t, first.Err(), holdfast.ErrLost)
		next := locktest.Lock(t, other, ctx, "k")
		proxy.OnRequest(nil)
		proxy.Release() // the late renewal
		time.Sleep(time.Second)
		s, err := other.Inspect(ctx, "k")
		require.NoError(t, err)
		require.Len(t, s.Holders, 2)
		require.ErrorIs(t, first.Unlock(ctx), holdfast.ErrLost)
		for _, l := range []*holdfast.Lease{second, next} {
			require.NoError(t, l.Err())
			require.NoError(t, l.Unlock(ctx))
		}
	})
}

// Attempts side by side whose replies are lost leave no permit taken.
func TestF7_AttemptsSideBySideAreUndone(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		w.net.Trip = time.Millisecond
		w.loadScripts()
		const n = 16
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr())
		waiting, err := semaphore.New(w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }), n)
		require.NoError(t, err)
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
		s, err := holder.Inspect(ctx, "k")
		require.NoError(t, err)
		require.Empty(t, s.Holders)
		require.NoError(t, waiting.Close())
	})
}

// An acquire that arrives after its caller has given it up takes no permit.
func TestF7_LateAcquire(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		proxy := redistest.NewProxyOn(t, w.net, w.server.Addr())
		client := w.server.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} })
		late, err := semaphore.New(client, 1)
		require.NoError(t, err)
		defer late.Close()
		other, ctx := w.open(1), context.Background()
		hook, held := locktest.Holding("acquire")
		proxy.OnRequest(hook)
		leaves, cancel := context.WithCancel(ctx)
		gone := locktest.Go(func() error { return locktest.ErrOf(late.Lock(leaves, "k")) })
		<-held
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		proxy.OnRequest(nil)
		proxy.Release()
		time.Sleep(10 * time.Second)
		lease, err := other.TryLock(ctx, "k")
		require.NoError(t, err)
		require.NoError(t, lease.Unlock(ctx))
	})
}

// Redis loses its memory: holders are told at their next renewal, and others get permits.
func TestF20_RestartWithoutData(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		l, ctx := w.open(2, holdfast.WithLease(3*time.Second)), context.Background()
		lease := locktest.Lock(t, l, ctx, "k")
		w.server.Do(t, "FLUSHALL")
		<-lease.Done()
		require.ErrorIs(t, lease.Err(), holdfast.ErrLost)
		for range 2 {
			locktest.Lock(t, l, ctx, "k")
		}
	})
}

// The server's clock jumps: ahead, leases end there, and holders are told; back, nothing ends early.
func TestF34_ClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Minute, -time.Minute} {
		t.Run(fmt.Sprint(jump), func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, w *world) {
				l, ctx := w.open(1, holdfast.WithLease(6*time.Second)), context.Background()
				lease := locktest.Lock(t, l, ctx, "k")
				w.server.JumpClock(jump)
				time.Sleep(5 * time.Second)
				if jump > 0 {
					require.ErrorIs(t, lease.Err(), holdfast.ErrLost)
				} else {
					require.NoError(t, lease.Unlock(ctx))
				}
				require.NoError(t, locktest.Lock(t, l, ctx, "k").Unlock(ctx))
			})
		})
	}
}
