package single

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/scripts"
)

// A release that Redis gets after the last waiter has gone leaves no wish, which would keep others out.
func TestALateReleaseLeavesNoWish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sim.Start(t, &sim.Network{Trip: time.Millisecond})
		c, err := engine.Configure("rwlock", "New", nil, nil)
		require.NoError(t, err)
		require.NoError(t, c.Check())
		_, writers, b := NewRWLock(s.Client(t), c)
		defer func() { require.NoError(t, writers.Close()) }()
		owner := "11111111-1111-4111-8111-111111111111" + ":01" + scripts.WriteSuffix
		reply, err := b.Acquire(t.Context(), "k", owner, time.Minute, 1)
		require.NoError(t, err)
		require.True(t, reply.OK)
		sub := b.Subscribe("k")
		goOn, over := make(chan bool), make(chan error)
		release := b.releases.one
		b.releases.one = func(ctx context.Context, k none, e scripts.ReadWriteReleaseRequest) (scripts.ReleaseReply, error) {
			<-goOn
			return release(ctx, k, e)
		}
		go func() {
			_, err := b.Release(t.Context(), scripts.ReleaseRequest{Key: "k", Owner: owner})
			over <- err
		}()
		synctest.Wait()
		sub.Close()
		time.Sleep(100 * time.Millisecond) // the wish is withdrawn
		goOn <- true
		require.NoError(t, <-over)
		time.Sleep(100 * time.Millisecond)
		require.Empty(t, s.Redis().Keys())
	})
}
