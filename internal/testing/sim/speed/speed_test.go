// Package speed_test holds how fast the locks are as figures: in virtual time they do not depend
// on the machine. The unit is a round trip.
package speed_test

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	trip  = 1100 * time.Microsecond // the mean round trip: twice that of sim.Trip
	lease = 6 * time.Second
)

var (
	seeds  = flag.Uint64("seeds", 2, "how many seeds the long scenarios have")
	length = flag.Duration("length", 10*time.Minute, "of the long scenarios, in virtual time")
)

// splitAgain is the bound, in trips, where votes may split again after they have split. Which way they go is random: 1 of 20 000
// grants takes more than 9 trips, and with each one more it is a quarter of these.
const splitAgain = 14.

// From Unlock to the next holder in another process, while some wait: a fair key is granted
// with its release, which takes one trip; the others are told, and ask, which takes two.
func TestNextHolder(t *testing.T) {
	for kind, most := range map[string]struct {
		median, most, longest float64 // trips; most: of 95 in 100
		passed                int
	}{
		"fair":      {1.1, 2, 2, 5},
		"rlock":     {2, 3.6, 3.6, 60},
		"rwlock":    {2.2, 3.6, 3.6, 10},
		"semaphore": {2, 3.6, 3.6, 60},
		"multilock": {2.1, 6, splitAgain, 40},
	} {
		t.Run(kind, func(t *testing.T) {
			s := life(t, kind, 1, 5*time.Second, 0)
			require.Less(t, trips(median(s.gaps)), most.median)
			require.Less(t, trips(quantile(s.gaps, 0.95)), most.most)
			require.Less(t, trips(slices.Max(s.gaps)), most.longest)
			require.LessOrEqual(t, slices.Max(s.passed), most.passed)
		})
	}
}

// Waiters of a key that many want hold back after each release. Those of other keys do not.
func TestNextHolderBesideAHotKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := open(t, "multilock", 1, 6)
		hot, stop := new(figures), time.Now().Add(500*time.Millisecond)
		var all sync.WaitGroup
		for p := range f.lockers {
			all.Go(func() {
				for time.Now().Before(stop) {
					f.use(hot, p, 5*time.Millisecond)
				}
			})
		}
		all.Wait()
		var gaps []time.Duration
		for i := range 7 {
			key := fmt.Sprint("quiet ", i)
			held, next := f.lock(0, key), make(chan *holdfast.Lease)
			go func() { next <- f.lock(1, key) }()
			time.Sleep(100 * time.Millisecond) // it listens
			free := time.Now()
			require.NoError(t, held.Unlock(t.Context()))
			e := <-next
			gaps = append(gaps, time.Since(free))
			require.NoError(t, e.Unlock(t.Context()))
		}
		slices.Sort(gaps)
		t.Logf("%.1f trips, at most %.1f", trips(median(gaps)), trips(slices.Max(gaps)))
		require.Less(t, trips(median(gaps)), 2.5)
	})
}

// A quorum starves nobody: the longest wait is at most twice that of a race on one Redis, and no
// split vote leaves a key free for long.
func TestG4_LongestWait(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
	for seed := range *seeds {
		one := life(t, "rlock", seed, *length, 5)
		several := life(t, "multilock", seed, *length, 5)
		require.LessOrEqual(t, slices.Max(several.waits), 2*slices.Max(one.waits))
		require.Less(t, quantile(several.gaps, 0.99), 10*time.Millisecond)
		require.Less(t, trips(slices.Max(several.gaps)), splitAgain)
	}
}

// A holder whose links go dead for good is followed when its lease, counted from its last
// renewal, has run out: by a waiter that then asks, or with fair at the next heartbeat.
func TestG4_Crash(t *testing.T) {
	for kind, most := range map[string]time.Duration{"rlock": 5 * trip, "multilock": 9 * trip, "fair": time.Second + 4*trip, "rwlock": 5 * trip, "semaphore": 5 * trip} {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(5) {
				synctest.Test(t, func(t *testing.T) {
					f := open(t, kind, seed, 3)
					f.lock(0, "k")
					held := time.Now()
					next := make(chan time.Time, 2)
					for p := range 2 {
						go func() {
							e := f.lock(p+1, "k")
							next <- time.Now()
							_ = e.Unlock(t.Context())
						}()
					}
					time.Sleep(lease/3 + lease/6) // it has renewed once
					for _, l := range f.world.Links[0] {
						l.HoldRequests(true)
						l.HoldReplies(true)
					}
					renewed := held.Add(lease / 3)
					free := (<-next).Sub(renewed) - lease
					t.Logf("the key was free for %.1f trips", trips(free))
					require.Less(t, free, most)
					<-next
					for _, l := range f.world.Links[0] {
						l.Cut()
						l.HoldRequests(false)
						l.HoldReplies(false)
					}
				})
			}
		})
	}
}
