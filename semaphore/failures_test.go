package semaphore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/semaphore"
)

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
