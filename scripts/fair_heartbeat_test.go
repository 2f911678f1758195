package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeartbeatProbesAndFinds(t *testing.T) {
	r := newHarness(t)
	require.Equal(t, Probed{}, r.heartbeat(clientA))
	r.follow(ofC(1), ofA(1), ofB(1), ofA(2))

	r.expire() // nobody says so
	require.Equal(t, Probed{}, r.heartbeat(clientB, ofB(1)))
	r.requireSaid(grantMessage(ofA(1)))
	r.requireHeld(ofA(1), grantLease)

	// The message was lost: the client's own heartbeat names the holder, and says
	// nothing that would move its trust.
	until := expiry(t, r.s, "k")
	require.Equal(t, Probed{Grant: Grant{Owner: ofA(1)}}, r.heartbeat(clientA, ofA(1), ofA(2)))
	require.Equal(t, Probed{}, r.heartbeat(clientB, ofB(1)))
	require.Equal(t, until, expiry(t, r.s, "k"))
	r.requireSaid()

	r.expire()
	require.Equal(t, Probed{Grant: granted(ofB(1))}, r.heartbeat(clientB, ofB(1)))
	r.requireQueue(ofA(2))
}

func TestHeartbeatNamesTheAbsent(t *testing.T) {
	r := newHarness(t)
	r.follow(ofC(1), ofA(1), ofB(1), ofA(2))
	r.silence(clientA)
	r.release(ofC(1)) // drops ofA(1)
	require.Equal(t, Probed{Absent: []int{0, 2}}, r.heartbeat(clientA, ofA(1), ofA(2), ofA(3)))
	require.Equal(t, Probed{Grant: Grant{Owner: ofB(1)}}, r.heartbeat(clientB, ofB(1)), "a holder is not absent")
	r.s.Do(t, "FLUSHALL")
	require.Equal(t, Probed{Absent: []int{0}}, r.heartbeat(clientA, ofA(2)))
	r.requireQueue()
}

// Somebody deletes the list alone: the scores do not keep anybody waiting for a
// place that is not there, in either order of entering.
func TestG4_QueueDeleted(t *testing.T) {
	r := newHarness(t)
	for _, first := range []string{ofB(3), ofJ(1)} {
		r.s.Do(t, "FLUSHALL")
		r.hold()
		r.waits(ofA(1), ofB(1))
		r.s.Do(t, "DEL", queue("k"))
		require.Equal(t, []int{0}, r.heartbeat(clientB, ofB(1)).Absent)
		if first == ofB(3) {
			r.waits(first)
			require.Equal(t, []string{first}, r.waiting())
		} else {
			r.s.Do(t, "ZADD", scores("k"), "9e15", first)
			r.s.Do(t, "RPUSH", queue("k"), first)
		}
		require.Equal(t, []int{0}, r.heartbeat(clientA, ofA(1)).Absent, first)
		require.Empty(t, r.heartbeat(clientB, first).Absent)
		r.leave(ofA(1))
		r.leave(ofB(1))
		r.requireQueue(first)
	}
	// What the dead have left goes when the next queue begins.
	r.s.Do(t, "DEL", queue("k"))
	r.waits(ofB(9))
	r.requireQueue(ofB(9))
}

func TestHeartbeatMovesScoresForwardOnly(t *testing.T) {
	r := newHarness(t)
	r.hold()
	r.waits(ofA(1), ofA(2), ofA(3), ofB(1))
	now := serverMillis(t, r.s)
	for owner, ahead := range map[string]int64{ofA(1): 100_000, ofA(2): 1_400_000, ofA(3): -100_000, ofB(1): 100_000} {
		r.s.Do(t, "ZADD", scores("k"), decimal(now+ahead), owner)
	}
	probed := make([]Probed, 1)
	asked := []Heartbeat{{Key: "k", Owners: []string{ofA(1), ofA(2), ofA(3), ofA(4)},
		Distances: []time.Duration{300 * time.Second, 300 * time.Second, 0, 300 * time.Second}}}
	for range 2 { // repeated, it adds nothing
		require.NoError(t, r.of(ofA(1)).Heartbeat(bounded(t), asked, probed))
		require.Equal(t, []Probed{{Absent: []int{3}}}, probed)
		for owner, want := range map[string]time.Duration{ofA(1): 300, ofA(2): 1400, ofA(3): -100, ofB(1): 100} {
			require.InDelta(t, want*time.Second, r.ahead(owner), float64(slack), owner)
		}
	}
	r.requireQueue(ofA(1), ofA(2), ofA(3), ofB(1))

	asked[0].Owners, asked[0].Distances = []string{ofA(1)}, []time.Duration{time.Hour} // given when the queue was longer
	require.NoError(t, r.of(ofA(1)).Heartbeat(bounded(t), asked, probed))
	require.InDelta(t, 5*javaWait, r.ahead(ofA(1)), float64(slack))
}
