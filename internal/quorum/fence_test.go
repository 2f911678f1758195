package quorum

import (
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func fencing(c *Config) { c.Fencing = true }

// counters are the nodes' fence counters; 0: none.
func (r *harness) counters() (all []int64) {
	r.t.Helper()
	for i := range r.servers {
		last, _ := strconv.ParseInt(r.text(i, "GET", token), 10, 64)
		all = append(all, last)
	}
	return all
}

// countTo sets a node's fence counter.
func (r *harness) countTo(node int, last int64) {
	r.t.Helper()
	r.do(node, "SET", token, strconv.FormatInt(last, 10), "PX", "3600000")
}

// fenceOf lets a client take and release the lock, and returns the first number of its range.
// It gives the others back or not.
func (r *harness) fenceOf(c *client, own string, giveBack bool) wire.AcquireReply {
	r.t.Helper()
	a := c.takes(own)
	require.GreaterOrEqual(r.t, a.FenceEnd, a.Fence)
	there := slices.DeleteFunc(r.counters(), func(last int64) bool { return last < a.FenceEnd })
	require.GreaterOrEqual(r.t, len(there), 2, "returned before a quorum has it")
	used := int64(0)
	if giveBack {
		used = a.Fence
	}
	c.releases(c.owner, used)
	r.settles("", "", "")
	return a
}

// The numbers of one node are ahead of the clocks of the others, so only the writing back
// carries them on. Any two of three clients share only one node.
func TestG10_QuorumsThatMeetInOneNode(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		var clients []*client
		for away := range 3 {
			c := r.client(fencing)
			c.cutOff(away)
			clients = append(clients, c)
		}
		last := time.Now().Add(time.Hour).UnixMicro()
		r.countTo(1, last)
		for i := range 12 {
			a := r.fenceOf(clients[i%3], ownO, i%2 == 0)
			require.Greater(t, a.Fence, last)
			if last = a.FenceEnd; i%2 == 0 {
				last = a.Fence
			}
		}
	})
}

// Numbers that were reserved and not given back are lost. They must not carry later ones so far ahead of the
// clocks that nodes which have forgotten fall behind.
func TestG10_ReservedNumbersAreNotFarAhead(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		r.sim(1).JumpClock(lease * 3 / 10) // as far as true clocks may be apart
		x := r.warm(fencing)
		x.cutOff(2)
		ask := asking("k", ownX, lease)
		ask.Fencing.Reserve = 2 * lease.Microseconds()
		a, err := x.Acquire(t.Context(), ask)
		require.NoError(t, err)
		require.True(t, a.OK)
		x.releases(ownX, 0)
		last := r.fenceOf(x, ownO, true).Fence
		require.Greater(t, last, a.FenceEnd)

		y := r.client(fencing)
		y.cutOff(1)
		for _, n := range []int{0, 1} {
			r.do(n, "FLUSHALL")
		}
		_, _ = y.Acquire(t.Context(), asking("other", ownY, lease)) // begins the time of node 0 without a vote
		time.Sleep(lease + lease/20)
		require.Greater(t, r.fenceOf(y, ownO, true).Fence, last)
	})
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
	inBubbles(t, 3, map[string]bool{"lost meanwhile": false, "taken by another": true}, func(t *testing.T, r *harness, taken bool) {
		x, lost := r.warm(fencing), false
		x.cutOff(2)
		newer := time.Now().UnixMicro() - 1_000_000
		lose := sync.OnceFunc(func() {
			lost = true
			_, _ = r.servers[0].TryDo("DEL", "k")
			if taken {
				_, _ = r.servers[0].TryDo("HSET", "k", ownY, "1")
				_, _ = r.servers[0].TryDo("SET", token, strconv.FormatInt(newer, 10))
			}
		})
		x.ways[0].OnRequest(redistest.Seeing(writesBack(ownX), lose))
		a, err := x.get(ownX)
		require.True(t, lost, "failed before it wrote back: %v", err)
		require.True(t, err != nil || !a.OK, "returned with one node of three")
		if !taken {
			r.settles("", "", "")
			return
		}
		r.settles(ownY, "", "")
		require.Equal(t, newer, r.counters()[0])
	})
}

// Lock does not return a number if it is not known whether a quorum has it, and gives the
// hold up.
func TestG10_WriteBackThatIsNotAnswered(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x := r.warm(fencing)
		x.cutOff(2)
		lost := x.ways[0].SwallowReply(1, writesBack(ownX))
		a, err := x.get(ownX)
		<-lost
		require.False(t, a.OK)
		require.Equal(t, wire.Unknown, wire.OutcomeOf(err), "%v", err)
		r.settles("", "", "")
		x.takes(ownY)
	})
}

// Nodes that were late or away also get the number, as a minority may then lose its
// counters.
func TestG10_WrittenBackToAllNodes(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		x, y := r.warm(fencing), r.warm(fencing)
		for _, late := range []bool{true, false} {
			ahead := time.Now().Add(time.Hour).UnixMicro()
			r.countTo(0, ahead)
			if late {
				x.ways[2].HoldRequests(true)
			} else {
				x.cutOff(2)
			}
			a := x.takes(ownX)
			require.Greater(t, a.Fence, ahead)
			x.ways[2].HoldRequests(false)
			x.ways[2].Refuse(false)
			locktest.Await(t, func() bool { return slices.Min(r.counters()) >= a.FenceEnd })
			x.releases(x.owner, 0)
			r.settles("", "", "")
			r.do(0, "DEL", token)
			require.Greater(t, r.fenceOf(y, ownY, false).Fence, a.FenceEnd)
			r.onAll("DEL", token)
		}
	})
}

// Waiting cannot cure a refused write-back.
func TestF32_WriteBackRefused(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.warm(fencing)
		for _, way := range c.ways {
			way.OwnWords("ERR ACL failure in script: User default has no permissions to run the 'hexists' command", true, writesBack(ownX))
		}
		a, err := c.get(ownX)
		require.False(t, a.OK)
		require.ErrorContains(t, err, "ACL failure in script")
		require.Equal(t, wire.Refused, wire.OutcomeOf(err), "%v", err)
		r.settles("", "", "")
		for _, way := range c.ways[1:] {
			way.OwnWords("", true, nil)
		}
		c.ways[0].OwnWords("NOPERM", true, func(cmd []string) bool { return len(cmd) > 5 && writesBack(cmd[5])(cmd) })
		c.takes(ownY) // the others outvote one that refuses
	})
}

// A wrong clock makes no numbers, and leaves none in a counter. So no fence is ahead of the
// time, and fences do not go back when the clock is right again and the nodes lose their
// counters. The log tells of it once.
func TestG10_F34_OneWrongClock(t *testing.T) {
	inBubbles(t, 3, map[string]time.Duration{
		"an hour ahead": time.Hour, "an hour behind": -time.Hour, "far ahead": 240 * 365 * 24 * time.Hour,
	}, func(t *testing.T, r *harness, ahead time.Duration) {
		var log redistest.Log
		c := r.client(fencing, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		last := r.fenceOf(c, ownA, true).Fence
		r.sim(2).JumpClock(ahead)
		for range 10 {
			next := r.fenceOf(c, ownB, true).Fence
			require.Greater(t, next, last)
			require.InDelta(t, time.Now().UnixMicro(), next, float64(lease.Microseconds()))
			last = next
		}
		require.Less(t, slices.Max(r.counters()), time.Now().Add(lease).UnixMicro())
		require.LessOrEqual(t, log.Count("clock differs"), 1)

		// Without the node that agrees, it is not known whose clock is wrong.
		c.cutOff(1)
		synctest.Wait() // its client knows it: else the call may be in doubt
		_, err := c.get(fresh(ownX))
		require.ErrorContains(t, err, "clock differs from the other nodes'")
		require.Equal(t, wire.Unavailable, wire.OutcomeOf(err))
		logged := log.Count("clock differs") // of one node, or of each of the two
		require.True(t, logged == 1 || logged == 2, logged)
		c.ways[1].Refuse(false)

		r.sim(2).JumpClock(-ahead)
		r.onAll("DEL", token) // as each of them is restarted, and has its vote again
		require.Greater(t, r.fenceOf(c, ownY, true).Fence, last)
	})
}

// With WithClockFaults a lease needs more votes, but a number needs no more clocks that
// agree.
func TestG10_F34_ClockFaultsWithFencing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, r *harness) {
		c := r.client(fencing, func(c *Config) { c.ClockFaults = 1 })
		r.sim(0).JumpClock(time.Hour)
		require.Less(t, r.fenceOf(c, ownO, true).Fence, time.Now().Add(lease).UnixMicro())
	})
}
