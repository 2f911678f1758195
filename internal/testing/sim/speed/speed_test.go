// Package speed_test holds how fast the locks are as figures: in virtual time they do not depend
// on the machine. The unit is a round trip.
package speed_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
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

// openSplit opens lockers of which the first three split the votes when they ask at the same time: each has two
// nodes, or one, to which its way is shorter.
func openSplit(t *testing.T, processes int) *fleet {
	f := open(t, "multilock", 1, processes)
	for p, links := range f.world.Links {
		for n, l := range links {
			way := trip / 2
			if n/2 == p {
				way -= 100 * time.Microsecond
			}
			l.SetJitter(nil)
			l.SetDelay(way, trip/2)
		}
	}
	return f
}

// Three rounds that ask at the same time get two, two and one of five nodes. One of them gets
// the lock: it waits for half a trip and asks the others again.
func TestSplitVoteIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openSplit(t, 3)
		for round := range 20 {
			began := time.Now()
			var all sync.WaitGroup
			held := make([]*holdfast.Lease, len(f.lockers))
			for p, l := range f.lockers {
				all.Go(func() { held[p], _ = l.TryLock(t.Context(), "k") })
			}
			all.Wait()
			held = slices.DeleteFunc(held, func(e *holdfast.Lease) bool { return e == nil })
			require.Len(t, held, 1, "round %d", round)
			require.Less(t, trips(time.Since(began)), 4.)
			require.NoError(t, held[0].Unlock(t.Context()))
			time.Sleep(time.Second)
		}
	})
}

// A release reaches the nodes at different times, and so its messages come one after the other. The late ones do not
// have the losers of a split vote ask for what they have just given back to the winner.
func TestSplitVoteIsSettledDespiteLateMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := openSplit(t, 4)
		for n, l := range f.world.Links[3] {
			l.SetDelay(trip/2+time.Duration(n)*trip/10, trip/2)
		}
		counts := []*calls{f.count(0), f.count(1), f.count(2)}
		for i := range 20 {
			key := fmt.Sprint("k", i)
			held, served := f.lock(3, key), make(chan *holdfast.Lease, 3)
			for p := range 3 {
				go func() { served <- f.lock(p, key) }()
			}
			time.Sleep(time.Second) // they listen
			for _, c := range counts {
				c.taken()
			}
			go func() { assert.NoError(t, held.Unlock(t.Context())) }()
			e, scripts := <-served, 0
			for _, c := range counts {
				scripts += c.taken()["EVALSHA"]
			}
			require.LessOrEqual(t, scripts, 3*5+3+2*5, "round %d: three ask, one of them again, and two give up", i)
			for range 2 {
				require.NoError(t, e.Unlock(t.Context()))
				e = <-served
			}
			require.NoError(t, e.Unlock(t.Context()))
		}
	})
}

// A release reaches the nodes one after the other, and the only waiter asks before it has reached enough of them. What is
// left of that hold is no split vote: the waiter asks again with the message of the next node.
func TestNextHolder_BehindASlowRelease(t *testing.T) {
	for _, nodes := range []int{4, 5} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{t: t, world: sim.NewWorld(t, 1, 2, nodes)}
				for p := range 2 {
					f.add("multilock", f.world.Clients(p, noPings))
				}
				for n, l := range f.world.Links[0] {
					l.SetDelay(time.Duration(n)*trip, 0)
				}
				var gaps []time.Duration
				for i := range 100 {
					key := fmt.Sprint("k", i)
					held, next := f.lock(0, key), make(chan *holdfast.Lease)
					go func() { next <- f.lock(1, key) }()
					time.Sleep(time.Second) // it listens
					began := time.Now()
					go func() { assert.NoError(t, held.Unlock(t.Context())) }()
					e := <-next
					gaps = append(gaps, time.Since(began))
					require.NoError(t, e.Unlock(t.Context()))
					time.Sleep(time.Second)
				}
				slices.Sort(gaps)
				t.Logf("%.1f trips, at most %.1f", trips(median(gaps)), trips(slices.Max(gaps)))
				require.Less(t, trips(median(gaps)), 5.)
				require.Less(t, trips(slices.Max(gaps)), 30.)
			})
		})
	}
}

// A node that is asked again gives its vote, but the reply is lost or late: that of one node, or
// of all. There is one holder at a time, all are served within the time of a few rounds, and
// nothing is left over.
func TestSplitVote_WithoutTheSecondReply(t *testing.T) {
	const round = 2 * multilock.DefaultNodeTimeout // at most: it asks twice
	for name, c := range map[string]struct {
		nodes int
		late  time.Duration // 0: lost
	}{
		"one lost": {1, 0}, "all lost": {5, 0},
		"one late": {1, 10 * trip}, "all late": {5, 10 * trip},
		"one too late": {1, 3 * round}, "all too late": {5, 3 * round},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := openSplit(t, 3)
				var disturbed, inside atomic.Int32
				for _, links := range f.world.Links {
					for n, l := range links {
						var acquire atomic.Value // the script that is called first
						asked := new(sync.Map)
						l.OnReply(func(cmd []string) redistest.Verdict {
							if cmd[0] != "EVALSHA" {
								return redistest.Pass
							}
							acquire.CompareAndSwap(nil, cmd[1])
							if _, again := asked.LoadOrStore(strings.Join(cmd, " "), true); !again || cmd[1] != acquire.Load() || n < 5-c.nodes {
								return redistest.Pass
							}
							disturbed.Add(1)
							if c.late == 0 {
								return redistest.Cut
							}
							time.AfterFunc(c.late, l.Release)
							return redistest.Hold
						})
					}
				}
				for i := range 5 {
					began, served := time.Now(), make(chan time.Duration, 3)
					var all sync.WaitGroup
					for p := range f.lockers {
						all.Go(func() {
							e := f.lock(p, "k")
							served <- time.Since(began)
							assert.EqualValues(t, 1, inside.Add(1), "round %d: two holders", i)
							time.Sleep(trip)
							assert.NoError(t, e.Err())
							inside.Add(-1)
							assert.NoError(t, e.Unlock(t.Context()))
						})
					}
					all.Wait()
					first, _, last := <-served, <-served, <-served
					require.Less(t, first, 2*(round+c.late), "round %d", i)
					require.Less(t, last, 3*(round+c.late), "round %d: each of them may miss a reply", i)
					time.Sleep(3 * time.Second)
					for _, s := range f.world.Servers {
						require.False(t, s.Redis().Exists("k"), "round %d", i)
					}
				}
				require.Positive(t, disturbed.Load())
			})
		})
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
