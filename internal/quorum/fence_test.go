package quorum

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

func fencing(c *Config) { c.Fencing = true }

// pairs are three clients. Any two of them share only one node.
func (r *harness) pairs() []*client {
	r.t.Helper()
	var all []*client
	for away := range 3 {
		c := r.client(fencing)
		r.warm(c)
		for i := range r.servers {
			c.idle(i)
			r.do(i, "DEL", "warm", "redisson_lock_token:{warm}")
		}
		c.cutOff(away)
		all = append(all, c)
	}
	return all
}

// counter is a node's fence counter, or 0.
func (r *harness) counter(node int) int64 {
	r.t.Helper()
	m := r.do(node, "GET", token)
	last, err := m.AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0
	}
	require.NoError(r.t, err)
	return last
}

// next lets a client take and release the lock, and returns the last number that it may
// have used. All its numbers must be larger than last.
func (r *harness) next(c *client, owner string, last int64, giveBack bool) int64 {
	r.t.Helper()
	a := c.holds(owner)
	require.Greater(r.t, a.Fence, last)
	require.GreaterOrEqual(r.t, a.FenceEnd, a.Fence)
	there := 0
	for i := range r.servers {
		if r.counter(i) >= a.FenceEnd {
			there++
		}
	}
	require.GreaterOrEqual(r.t, there, 2, "returned before a quorum has it")
	used, given := a.FenceEnd, int64(0)
	if giveBack {
		used, given = a.Fence, a.Fence
	}
	said, err := c.Release(locktest.Bounded(r.t), "k", c.owner, given)
	require.NoError(r.t, err)
	require.True(r.t, said.Ours)
	locktest.Await(r.t, func() bool { return r.holder(0)+r.holder(1)+r.holder(2) == "" })
	return used
}

// The numbers of one node are ahead of the clocks of the others, so only the writing back
// carries them on.
func TestG10_QuorumsThatMeetInOneNode(t *testing.T) {
	r := newActiveHarness(t, 3)
	clients := r.pairs()
	last := time.Now().Add(time.Hour).UnixMicro()
	r.do(1, "SET", token, strconv.FormatInt(last, 10), "PX", "3600000")
	for i := range 12 {
		last = r.next(clients[i%3], ownO+strconv.Itoa(i), last, i%2 == 0)
	}
}

// writesBack distinguishes an owner's write-back from other calls, such as late ones of an
// earlier round.
func writesBack(owner string) func(cmd []string) bool {
	return func(cmd []string) bool {
		return cmd[0] == "EVALSHA" && len(cmd) == 8 && cmd[2] == "2" && cmd[5] == owner
	}
}

// A number counts as written back only if the hold is ours: else it would meet a newer
// holder's, which that holder gives back together with its own.
func TestG10_WrittenBackOnlyByTheHolder(t *testing.T) {
	for name, taken := range map[string]bool{"lost meanwhile": false, "taken by another": true} {
		t.Run(name, func(t *testing.T) {
			r, x := newWarmClient(t, 3, fencing)
			x.idle(2)
			x.cutOff(2)
			newer := strconv.FormatInt(time.Now().UnixMicro()-1_000_000, 10)
			var lost atomic.Bool
			lose := sync.OnceFunc(func() {
				lost.Store(true)
				_, _ = r.servers[0].TryDo("DEL", "k")
				if taken {
					_, _ = r.servers[0].TryDo("HSET", "k", ownY, "1")
					_, _ = r.servers[0].TryDo("SET", token, newer)
				}
			})
			x.ways[0].OnRequest(func(cmd []string) redistest.Verdict {
				if writesBack(ownX)(cmd) {
					lose()
				}
				return redistest.Pass
			})
			a, err := x.get(ownX)
			require.True(t, lost.Load(), "failed before it wrote back: %v", err)
			require.True(t, err != nil || !a.OK, "returned with one node of three")
			locktest.Await(t, func() bool { return r.holder(1) == "" })
			if taken {
				require.Equal(t, ownY, r.holder(0))
				require.Equal(t, newer, strconv.FormatInt(r.counter(0), 10))
			}
		})
	}
}

// Lock does not return a number if it is not known whether a quorum has it, and gives the
// hold up.
func TestG10_WriteBackThatIsNotAnswered(t *testing.T) {
	r, x := newWarmClient(t, 3, fencing)
	x.cutOff(2)
	lost := x.ways[0].SwallowReply(1, writesBack(ownX))
	a, err := x.get(ownX)
	<-lost
	require.False(t, a.OK)
	require.Equal(t, scripts.Unknown, scripts.OutcomeOf(err), "%v", err)
	locktest.Await(t, func() bool { return r.holder(0) == "" && r.holder(1) == "" })
	x.holds(ownY)
}

// Nodes that were late or away also get the number, as a minority may then lose its
// counters.
func TestG10_WrittenBackToAllNodes(t *testing.T) {
	r := newActiveHarness(t, 3)
	x, y := r.client(fencing), r.client(fencing)
	r.warm(x)
	r.warm(y)
	for i := range 6 {
		ahead := time.Now().Add(time.Hour).UnixMicro()
		r.do(0, "SET", token, strconv.FormatInt(ahead, 10), "PX", "3600000")
		goOn := make(chan struct{})
		if i%2 == 0 {
			x.ways[2].OnRequest(func([]string) redistest.Verdict { <-goOn; return redistest.Pass })
		} else {
			x.cutOff(2)
		}
		a := x.holds(ownX + strconv.Itoa(i))
		require.Greater(t, a.Fence, ahead)
		x.ways[2].OnRequest(nil)
		close(goOn)
		x.reach(2)
		locktest.Await(t, func() bool {
			return min(r.counter(0), r.counter(1), r.counter(2)) >= a.FenceEnd
		})
		_, err := x.Release(locktest.Bounded(t), "k", x.owner, 0)
		require.NoError(t, err)
		locktest.Await(t, func() bool { return r.holder(0)+r.holder(1)+r.holder(2) == "" })
		r.do(0, "DEL", token)
		r.next(y, ownY+strconv.Itoa(i), a.FenceEnd, false)
		for j := range r.servers {
			r.do(j, "DEL", token)
		}
	}
}

// Waiting cannot cure a refused write-back.
func TestF32_WriteBackRefused(t *testing.T) {
	r, c := newWarmClient(t, 3, fencing)
	for i := range r.servers {
		r.do(i, "ACL", "SETUSER", "default", "-hexists")
	}
	a, err := c.get(ownX)
	require.False(t, a.OK)
	require.Regexp(t, "can't run this command|ACL failure in script", err.Error())
	require.Equal(t, scripts.Refused, scripts.OutcomeOf(err), "%v", err)
	for i := range r.servers {
		locktest.Await(t, func() bool { return r.holder(i) == "" })
	}
	for i := range r.servers[1:] {
		r.do(i, "ACL", "SETUSER", "default", "+hexists")
	}
	c.holds(ownY) // the others outvote one that refuses
}

// clocksHarness is a harness with nodes that have their votes, and clocks that a test can
// set.
func clocksHarness(t *testing.T, nodes int, longest time.Duration) *harness {
	t.Helper()
	r := &harness{t: t}
	for range nodes {
		r.servers = append(r.servers, redistest.StartWithClock(t))
	}
	require.NoError(t, r.client(func(c *Config) { c.Longest = longest }).Bootstrap(locktest.Bounded(t), true))
	return r
}

// fenceOf lets a client take and release the lock, and returns the first number.
func (r *harness) fenceOf(c *client, owner string) int64 {
	r.t.Helper()
	a := c.holds(owner)
	_, err := c.Release(locktest.Bounded(r.t), "k", c.owner, a.Fence)
	require.NoError(r.t, err)
	locktest.Await(r.t, func() bool { return r.holder(0)+r.holder(1)+r.holder(2) == "" })
	return a.Fence
}

// A wrong clock makes no numbers, and leaves none in a counter. So no fence is ahead of the
// time, and fences do not go back when the clock is right again and the nodes lose their
// counters. The log tells of it once.
func TestG10_F34_OneWrongClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour, 240 * 365 * 24 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			r := clocksHarness(t, 3, lease)
			var log redistest.Log
			c := r.client(fencing, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			last := r.fenceOf(c, fresh(ownA))
			r.servers[2].SetClock(ahead, 1)
			for range 10 {
				next := r.fenceOf(c, fresh(ownB))
				require.Greater(t, next, last)
				require.InDelta(t, time.Now().UnixMicro(), next, float64(lease.Microseconds()))
				last = next
			}
			for i := range r.servers {
				require.Less(t, r.counter(i), time.Now().Add(lease).UnixMicro())
			}
			require.LessOrEqual(t, log.Count("clock differs"), 1)

			// Without the node that agrees, it is not known whose clock is wrong.
			c.cutOff(1)
			locktest.Await(t, func() bool {
				_, err := c.get(fresh(ownX))
				return err != nil && strings.Contains(err.Error(), "clock differs from the other nodes'") &&
					scripts.OutcomeOf(err) == scripts.Unavailable
			})
			logged := log.Count("clock differs") // of one node, or of each of the two
			require.True(t, logged == 1 || logged == 2, logged)
			c.reach(1)

			r.servers[2].SetClock(0, 1)
			for i := range r.servers { // as each of them is restarted, and has its vote again
				r.do(i, "DEL", token)
			}
			require.Greater(t, r.fenceOf(c, fresh(ownY)), last)
		})
	}
}

// With WithClockFaults a lease needs more votes, but a number needs no more clocks that
// agree.
func TestG10_F34_ClockFaultsWithFencing(t *testing.T) {
	r := clocksHarness(t, 3, lease)
	c := r.client(fencing, func(c *Config) { c.ClockFaults = 1 })
	r.servers[0].SetClock(time.Hour, 1)
	require.Less(t, r.fenceOf(c, fresh(ownO)), time.Now().Add(lease).UnixMicro())
}
