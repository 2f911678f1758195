package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHeartbeatMovesScoresForwardOnly(t *testing.T) {
	r := newHarness(t)
	r.hold()
	r.waits(ofA(1), ofA(2), ofA(3), ofB(1))
	now := serverMillis(t, r.s)
	for owner, ahead := range map[string]int64{ofA(1): 100_000, ofA(2): 1_400_000, ofA(3): -100_000, ofB(1): 100_000} {
		r.s.Do(t, "ZADD", scores("k"), decimal(now+ahead), owner)
	}
	asked := HeartbeatRequest{Owners: []string{ofA(1), ofA(2), ofA(3), ofA(4)},
		Ahead: []time.Duration{300 * time.Second, 300 * time.Second, 0, 300 * time.Second}}
	for range 2 { // repeated, it adds nothing
		require.Equal(t, HeartbeatReply{Absent: []int{3}}, r.beat(clientA, asked))
		for owner, want := range map[string]time.Duration{ofA(1): 300, ofA(2): 1400, ofA(3): -100, ofB(1): 100} {
			require.InDelta(t, want*time.Second, r.ahead(owner), float64(slack), owner)
		}
	}
	r.requireQueue(ofA(1), ofA(2), ofA(3), ofB(1))

	r.beat(clientA, HeartbeatRequest{Owners: []string{ofA(1)}, Ahead: []time.Duration{time.Hour}}) // given when the queue was longer
	require.InDelta(t, 5*javaWait, r.ahead(ofA(1)), float64(slack))
}

const week = 7 * 24 * time.Hour

// lasts requires that the queue and its scores expire after about that time.
func (r *harness) lasts(d time.Duration) {
	r.t.Helper()
	for _, key := range []string{queue("k"), scores("k")} {
		require.InDelta(r.t, d.Milliseconds(), number(r.t, r.s, "PTTL", key), float64(time.Hour.Milliseconds()), key)
	}
}

func (r *harness) lastsAnHour() {
	r.t.Helper()
	for _, key := range []string{queue("k"), scores("k")} {
		r.s.Do(r.t, "PEXPIRE", key, decimal(time.Hour.Milliseconds()))
	}
}

// A queue of which all waiters die does not stay forever. The first to enter sets an expiry,
// and a heartbeat that moves scores on moves it on.
func TestG7_QueuesExpire(t *testing.T) {
	r := newHarness(t)
	r.follow(ofA(1), ofB(1))
	r.lasts(week)
	r.lastsAnHour()
	r.waits(ofC(1))
	r.lasts(time.Hour)
	r.heartbeat(clientB)
	r.lasts(time.Hour)
	r.heartbeat(clientB, ofB(1))
	r.lasts(week)
	r.release(ofA(1))
	r.requireQueue(ofC(1))
	r.lasts(week)
}

// Java sets no expiry, so its waiters must not lose their places when none of ours is left to
// move the expiry on: neither when a waiter of ours gives up, nor when it has been served.
func TestG7_QueuesOfJavaStay(t *testing.T) {
	const centuryAlmost = 3_000_000_000_000 * time.Millisecond
	r := newHarness(t)
	r.follow(ofA(1), ofB(1))
	r.javaWaits(ofJ(1))
	r.lasts(week)
	r.leave(ofB(1))
	r.requireQueue(ofJ(1))
	r.lasts(centuryAlmost)

	r.javaWaits(ofK(1))
	r.lastsAnHour()
	r.release(ofA(1))
	r.requireQueue(ofJ(1), ofK(1))
	r.lasts(centuryAlmost)
}

// A queue that Java began expires as well, once one of ours stands in it.
func TestG7_QueuesThatJavaBeganExpire(t *testing.T) {
	r := newHarness(t)
	require.True(t, r.acquire(ofA(1)).OK)
	r.javaWaits(ofJ(1))
	r.waits(ofB(1))
	r.lasts(week)
}
