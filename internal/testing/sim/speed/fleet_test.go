package speed_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
)

// fleet is lockers of one kind, each in a process of its own, on one server or on five nodes.
type fleet struct {
	t       *testing.T
	world   *sim.World
	lockers []sim.Locker
}

func open(t *testing.T, kind string, seed uint64, processes int) *fleet {
	f := &fleet{t: t, world: sim.NewWorld(t, seed, processes, nodesOf(kind))}
	for p := range processes {
		f.add(kind, f.world.Clients(p, noPings))
	}
	return f
}

func nodesOf(kind string) int {
	if kind == "multilock" {
		return 5
	}
	return 1
}

func noPings(o *rueidis.ClientOption) { o.Dialer.KeepAlive = time.Hour }

// add opens the locker of the next process.
func (f *fleet) add(kind string, clients []rueidis.Client) {
	var l sim.Locker
	var err error
	switch kind {
	case "rlock":
		l, err = rlock.New(clients[0], holdfast.WithLease(lease))
	case "fair":
		l, err = fair.New(clients[0], holdfast.WithLease(lease))
	case "rwlock":
		l, err = rwlock.New(clients[0], holdfast.WithLease(lease))
	case "semaphore":
		l, err = semaphore.New(clients[0], 1, holdfast.WithLease(lease))
	default:
		l, err = multilock.New(clients, holdfast.WithLease(lease), multilock.WithoutRestartGuard())
	}
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = l.Close() })
	f.lockers = append(f.lockers, l)
	require.NoError(f.t, f.lock(len(f.lockers)-1, "first").Unlock(f.t.Context())) // the servers know the scripts now
}

func (f *fleet) lock(p int, key string) *holdfast.Lease {
	e, err := f.lockers[p].Lock(f.t.Context(), key)
	if err != nil { // no fault happens to it
		f.t.Error(err)
	}
	return e
}

// figures are what the users of a key have seen.
type figures struct {
	mu      sync.Mutex
	waiting int
	served  int
	free    time.Time // when a holder unlocked while others waited; zero: they did not
	gaps    []time.Duration
	waits   []time.Duration
	passed  []int // how many were served during each wait
}

// use locks, holds for the time of a section, and unlocks.
func (f *fleet) use(s *figures, p int, section time.Duration) {
	s.mu.Lock()
	s.waiting++
	began, before := time.Now(), s.served
	s.mu.Unlock()
	e := f.lock(p, "k")
	s.mu.Lock()
	s.waiting--
	if !s.free.IsZero() {
		s.gaps = append(s.gaps, time.Since(s.free))
	}
	s.waits = append(s.waits, time.Since(began))
	s.passed = append(s.passed, s.served-before)
	s.served++
	s.mu.Unlock()
	time.Sleep(section)
	s.mu.Lock()
	if s.free = time.Now(); s.waiting == 0 {
		s.free = time.Time{}
	}
	s.mu.Unlock()
	if err := e.Unlock(f.t.Context()); err != nil {
		f.t.Error(err)
	}
}

// life has one caller in each of six processes use a key for a while. One section in so many
// lasts up to three leases, the others up to 50 ms; none: all are short.
func life(t *testing.T, kind string, seed uint64, length time.Duration, long int) *figures {
	s := new(figures)
	synctest.Test(t, func(t *testing.T) {
		f := open(t, kind, seed, 6)
		stop := time.Now().Add(length)
		var all sync.WaitGroup
		for p := range f.lockers {
			r := sim.Random(seed, fmt.Sprint("caller ", p))
			upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
			all.Go(func() {
				for time.Now().Before(stop) {
					section := upTo(50 * time.Millisecond)
					if long > 0 && r.IntN(long) == 0 {
						section = upTo(3 * lease)
					}
					f.use(s, p, section)
					if r.IntN(10) == 0 {
						time.Sleep(upTo(time.Second))
					}
				}
			})
		}
		all.Wait()
	})
	slices.Sort(s.gaps)
	t.Logf("%s, seed %d: %d grants; from Unlock to the next holder %.1f trips, at most %.1f; longest wait %v, while %d others were served",
		kind, seed, s.served, trips(median(s.gaps)), trips(slices.Max(s.gaps)), slices.Max(s.waits), slices.Max(s.passed))
	return s
}

func median(all []time.Duration) time.Duration { return quantile(all, 0.5) }

// quantile returns the value that so large a part of all, which are sorted, does not exceed.
func quantile(all []time.Duration, part float64) time.Duration {
	return all[int(part*float64(len(all)))]
}

func trips(d time.Duration) float64 { return float64(d) / float64(trip) }
