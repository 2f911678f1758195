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
