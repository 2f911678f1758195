package sim_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// took says how long f takes.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// What no fault of one kind of lock needs, but a campaign brings about. The rest is proven by those faults.
func TestServer(t *testing.T) {
	var server *sim.Server
	var locker, other *rlock.Locker // of two processes
	lock := func(t *testing.T, l *rlock.Locker) *holdfast.Lease {
		lease, err := l.Lock(t.Context(), "k")
		require.NoError(t, err)
		return lease
	}
	for name, test := range map[string]func(t *testing.T){
		"a flush takes the lock": func(t *testing.T) {
			held := lock(t, locker)
			server.Forget()
			lock(t, other)
			<-held.Done()
			require.ErrorIs(t, held.Err(), holdfast.ErrLost)
		},
		"a restart with memory takes nothing": func(t *testing.T) {
			held := lock(t, locker)
			server.RestartWithMemory()
			time.Sleep(time.Hour)
			require.NoError(t, held.Unlock(t.Context()))
		},
		"a clock that jumps ends leases on the server alone": func(t *testing.T) {
			held := lock(t, locker)
			server.JumpClock(holdfast.DefaultLease)
			lock(t, other)
			require.NoError(t, held.Err(), "nobody has told yet")
			<-held.Done()
		},
		"a server without memory releases, and gives no lock": func(t *testing.T) {
			held := lock(t, locker)
			server.OutOfMemory(true)
			require.NoError(t, held.Unlock(t.Context()))
			_, err := locker.TryLock(t.Context(), "k")
			require.ErrorIs(t, err, holdfast.ErrUnavailable)
			require.ErrorContains(t, err, "OOM command not allowed")
			server.OutOfMemory(false)
			lock(t, locker)
		},
		"a server that refuses gives no lock": func(t *testing.T) {
			server.Refuse("LOADING Redis is loading the dataset in memory")
			_, err := locker.TryLock(t.Context(), "k")
			require.ErrorIs(t, err, holdfast.ErrUnavailable)
			server.Refuse("")
			lock(t, locker)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server = sim.Start(t, new(sim.Network))
				for _, l := range []**rlock.Locker{&locker, &other} {
					opened, err := rlock.New(server.Client(t))
					require.NoError(t, err)
					t.Cleanup(func() { _ = opened.Close() })
					*l = opened
				}
				test(t)
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
		l, err := rlock.New(w.Clients(0)[0])
		require.NoError(t, err)
		defer l.Close()
		all := slices.Concat(sim.OfLinks, sim.OfServers, []sim.FaultKind{sim.LoseMemory, sim.ClockJump})
		told := 0
		w.Play(sim.Schedule(1, 2, 1, time.Hour, 10*time.Second, time.Minute, all), func(sim.Fault) { told++ })
		require.Greater(t, told, 300)
		since, ok := w.Healthy(0)
		require.True(t, ok)
		require.WithinDuration(t, time.Now(), since, 5*time.Minute)
		time.Sleep(time.Second)
		twoTrips := took(func() { require.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil })) })
		require.Less(t, twoTrips, 20*time.Millisecond)
		require.Greater(t, twoTrips, 4*sim.Trip[0], "a link delays each request and each reply")
	})
}

// The restart guard sees which process a server is, and when it has begun.
func TestServersHaveTheRestartGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n sim.Network
		var servers []*sim.Server
		var clients []rueidis.Client
		for range 3 {
			s := sim.Start(t, &n)
			servers, clients = append(servers, s), append(clients, s.Client(t))
		}
		l, err := multilock.New(clients)
		require.NoError(t, err)
		defer l.Close()
		_, err = l.TryLock(t.Context(), "k")
		require.ErrorIs(t, err, holdfast.ErrUnavailable, "the nodes are new")
		require.NoError(t, l.DeclareNothingHeld(t.Context()))
		lock := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return l.Do(ctx, "k", func(context.Context) error { return nil })
		}
		require.NoError(t, lock())
		servers[0].Restart()
		require.NoError(t, lock(), "two of three are enough")
		servers[1].RestartWithMemory()
		require.ErrorIs(t, lock(), holdfast.ErrUnavailable)
		require.Less(t, took(func() {
			for errors.Is(lock(), holdfast.ErrUnavailable) {
			}
		}), 2*holdfast.DefaultLease)
	})
}
