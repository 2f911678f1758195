package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// A process stands still before it asks again the nodes that others have. The clocks of its first
// yeses are old by then: no clock is blamed, and the round ends as a split vote does.
func TestG10_AfterAPauseARoundAsksNobodyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const longest = 30 * time.Second
		w := sim.NewWorld(t, 1, 1, 5)
		var log redistest.Log
		q := New(w.Clients(0), Config{
			NodeTimeout: time.Second, Lease: longest, Longest: longest, FenceExpiry: time.Hour,
			Unguarded: true, Fencing: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		defer q.Close()
		for i, s := range w.Servers[2:] {
			s.Do(t, "HSET", "k", fmt.Sprint(ownY, i), "1")
		}
		w.Servers[2].Do(t, "PEXPIRE", "k", "10000")
		q.trips.Store(int64(40 * time.Second)) // r.pause lasts for half of it
		a, err := q.Acquire(t.Context(), "k", ownX, longest, 1)
		require.NoError(t, err)
		require.False(t, a.OK)
		require.True(t, a.Split)
		require.Empty(t, log.String())
	})
}

// A clock that runs ahead little by little does not take the fence counters with it.
func TestG10_F34_ClockThatDrifts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(t, 1, 1, 3)
		q := New(w.Clients(0), Config{
			NodeTimeout: time.Second, Lease: lease, Longest: lease, FenceExpiry: time.Hour,
			Unguarded: true, Fencing: true, Logger: slog.New(slog.DiscardHandler),
		})
		defer q.Close()
		for range 20 {
			owner := fresh(ownX)
			a, err := q.Acquire(t.Context(), "k", owner, lease, 1)
			require.NoError(t, err)
			require.True(t, a.OK)
			require.Less(t, a.FenceEnd, time.Now().Add(lease*2/3).UnixMicro())
			_, err = q.Release(t.Context(), "k", owner, 0)
			require.NoError(t, err)
			time.Sleep(time.Second) // all nodes have the number, and have released
			w.Servers[2].JumpClock(lease / 10)
		}
	})
}

// The first round checks nodes that hang. Others that come meanwhile do not wait for longer
// than their contexts let them, nor does its own caller.
func TestF15_TheFirstCheckOfNodesHoldsUpNobodyWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(t, 1, 1, 3)
		q := New(w.Clients(0), Config{NodeTimeout: time.Minute, Lease: lease, Longest: lease, Logger: slog.New(slog.DiscardHandler)})
		defer q.Close()
		for _, s := range w.Servers {
			s.Pause()
			defer s.Resume()
		}
		var all sync.WaitGroup
		for i, limit := range []time.Duration{2 * time.Second, time.Second} {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				began := time.Now()
				_, err := q.Acquire(ctx, "k", fmt.Sprint(ownX, i), lease, 1)
				require.ErrorContains(t, err, "context")
				require.Equal(t, limit, time.Since(began))
			})
			time.Sleep(time.Millisecond) // the first has begun to check
		}
		all.Wait()
	})
}
