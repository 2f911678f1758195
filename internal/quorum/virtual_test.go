package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A process stands still before it asks again the nodes that others have. The clocks of its first
// yeses are old by then: no clock is blamed, and the round ends as a split vote does.
func TestG10_AfterAPauseARoundAsksNobodyAgain(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, r *harness) {
		const longest = 30 * time.Second
		var log redistest.Log
		q := r.client(fencing, func(c *Config) {
			c.MaxLease, c.Unguarded, c.Logger = longest, true, slog.New(slog.NewTextHandler(&log, nil))
		})
		for i := 2; i < 5; i++ {
			r.do(i, "HSET", "k", fmt.Sprint(ownY, i), "1")
		}
		r.do(2, "PEXPIRE", "k", "10000")
		q.rtt.Store(int64(40 * time.Second)) // r.pause lasts for half of it
		a, err := q.Acquire(t.Context(), asking("k", ownX, longest))
		require.NoError(t, err)
		require.False(t, a.OK)
		require.True(t, a.Split)
		require.Empty(t, log.String())
	})
}

// A clock that runs ahead little by little does not take the fence counters with it.
func TestG10_F34_ClockThatDrifts(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.client(fencing, func(c *Config) { c.Unguarded = true })
		for range 20 {
			a := r.fenceOf(c, ownX, false)
			require.Less(t, a.FenceEnd, time.Now().Add(lease*2/3).UnixMicro())
			r.sim(2).JumpClock(lease / 10)
		}
	})
}

// The first round checks nodes that hang. Others that come meanwhile do not wait for longer
// than their contexts let them, nor does its own caller.
func TestF15_TheFirstCheckOfNodesHoldsUpNobodyWhoLeaves(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		q := r.client(func(c *Config) { c.NodeTimeout = time.Minute })
		for _, s := range r.servers {
			s.Pause()
			defer s.Resume()
		}
		var all sync.WaitGroup
		for i, limit := range []time.Duration{2 * time.Second, time.Second} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				began := time.Now()
				_, err := q.Acquire(ctx, asking("k", fmt.Sprint(ownX, i), lease))
				require.ErrorContains(t, err, "context")
				require.Equal(t, limit, time.Since(began))
			})
			time.Sleep(time.Millisecond) // the first has begun to check
		}
		all.Wait()
	})
}
