package sim_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What no fault of one kind of lock needs, but a campaign brings about. The rest is proven by those faults.
func TestServer(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *sim.Server, *rlock.Locker, *holdfast.Lease){
		"a restart with memory takes nothing": func(t *testing.T, s *sim.Server, _ *rlock.Locker, held *holdfast.Lease) {
			s.RestartWithMemory()
			time.Sleep(time.Hour)
			require.NoError(t, held.Unlock(t.Context()))
		},
		"a server without memory releases, and gives no lock": func(t *testing.T, s *sim.Server, l *rlock.Locker, held *holdfast.Lease) {
			s.OutOfMemory(true)
			require.NoError(t, held.Unlock(t.Context()))
			locktest.RequireSentinel(t, locktest.ErrOf(l.TryLock(t.Context(), "k")), holdfast.ErrUnavailable, "OOM command not allowed")
			s.OutOfMemory(false)
			locktest.Lock(t, l, t.Context(), "k")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sim.Start(t, new(sim.Network))
				l := locktest.Opened(rlock.New(s.Client(t)))(t)
				test(t, s, l, locktest.Lock(t, l, t.Context(), "k"))
			})
		})
	}
}

// A seed repeats its faults and all other choices.
func TestScheduleIsThatOfItsSeed(t *testing.T) {
	all := func(seed uint64) []sim.Fault {
		return sim.Schedule(seed, 3, 5, time.Hour, time.Second, time.Minute, sim.OfLinks)
	}
	require.Equal(t, all(1), all(1))
	require.NotEqual(t, all(1), all(2))
	seen := map[sim.FaultKind]int{}
	for _, f := range all(1) {
		seen[f.What]++
	}
	require.Len(t, seen, len(sim.OfLinks))
	require.InDelta(t, 3600, len(all(1)), 200)
	require.Equal(t, sim.Random(1, "a").Uint64(), sim.Random(1, "a").Uint64())
	require.NotEqual(t, sim.Random(1, "a").Uint64(), sim.Random(1, "b").Uint64())
}

// All mishaps end, and leave links and servers as they were.
func TestWorldIsWellAfterItsFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(t, 1, 2, 1)
		l := locktest.Opened(rlock.New(w.Clients(0)[0]))(t)
		all := slices.Concat(sim.OfLinks, sim.OfServers, []sim.FaultKind{sim.LoseMemory, sim.ClockJump})
		told := 0
		w.Play(sim.Schedule(1, 2, 1, time.Hour, 10*time.Second, time.Minute, all), func(sim.Fault) { told++ })
		require.Greater(t, told, 300)
		since, ok := w.Healthy(0)
		require.True(t, ok)
		require.WithinDuration(t, time.Now(), since, 5*time.Minute)
		time.Sleep(time.Second)
		began := time.Now()
		require.NoError(t, locktest.Cycle(l, t.Context(), "k"))
		twoTrips := time.Since(began)
		require.Less(t, twoTrips, 20*time.Millisecond)
		require.Greater(t, twoTrips, 4*sim.Trip[0], "a link delays each request and each reply")
	})
}
