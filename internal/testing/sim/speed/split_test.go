package speed_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
)

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
