package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const week = 7 * 24 * time.Hour

// lasts requires that the queue and its scores expire after about that time.
func (r *harness) lasts(d time.Duration) {
	r.t.Helper()
	for _, key := range []string{queue("k"), scores("k")} {
		left := number(r.t, r.s, "PTTL", key)
		require.InDelta(r.t, d.Milliseconds(), left, float64(time.Hour.Milliseconds()), key)
	}
}

func (r *harness) lastsAnHour() {
	r.t.Helper()
	for _, key := range []string{queue("k"), scores("k")} {
		r.s.Do(r.t, "PEXPIRE", key, decimal(time.Hour.Milliseconds()))
	}
}

// A queue of which all waiters die does not stay for ever. The first to enter sets an expiry,
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
