package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// So many are dead that one call cannot drop them: the answer to every call says that a
// heartbeat should follow.
func TestTooManyDeadForOneCall(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofC(1))
	r.enterMany(0, 2600)
	r.waits(ofB(1))
	r.silence(clientA)
	require.Equal(t, FairReply{Ours: true, HeartbeatSoon: true}, r.release(ofC(1)))
	r.requireFree()
	require.Equal(t, HeartbeatReply{HeartbeatSoon: true}, r.heartbeat(clientB))
	require.Equal(t, HeartbeatReply{Grant: granted(ofB(1))}, r.heartbeat(clientB))
	r.requireQueue()

	// Waiters whose grant is not delivered are passed over once: a heartbeat at once would not help.
	r.release(ofB(1))
	r.acquire(ofC(2))
	r.enterMany(3000, 1100)
	r.unsubscribe(r.inbox(ofA(1)))
	require.Equal(t, FairReply{Ours: true}, r.release(ofC(2)))
}

// enterMany has so many owners of client A enter, from a number on.
func (r *harness) enterMany(from, count int) {
	r.t.Helper()
	for i := from; i < from+count; i += 100 {
		var some []string
		for j := range 100 {
			some = append(some, ofA(i+j))
		}
		r.enter(some...)
	}
}

// A client is dead when the server's clock has reached what its last heartbeat wrote,
// whatever a client thinks; enter and heartbeat move that, and nothing else does.
func TestHeartbeatsCountByTheServersClock(t *testing.T) {
	r := newHarness(t, func(s *FairSettings) { s.WaiterTTL = 50 * time.Second })
	alive := func() int64 { return number(t, r.s, "HGET", heartbeats("k"), clientA) }
	set := func(until string) { r.s.Do(t, "HSET", heartbeats("k"), clientA, until) }
	requireAlive := func() {
		t.Helper()
		require.InDelta(t, 50_000, alive()-serverMillis(t, r.s), slackMillis)
	}
	r.hold()
	r.waits(ofA(1))
	requireAlive()
	require.InDelta(t, 110_000, number(t, r.s, "PTTL", heartbeats("k")), slackMillis, "the heartbeats themselves outlast their last client")

	now := serverMillis(t, r.s)
	// getting old; dead; of a clock that has stepped back
	for _, until := range []string{decimal(now + 2000), decimal(now - 1), decimal(now + 3_600_000), "no number"} {
		set(until)
		r.heartbeat(clientA, ofA(1))
		requireAlive()
		set(until)
		r.waits(ofA(1))
		requireAlive()
	}
	nearlyNew := serverMillis(t, r.s) + 49_000
	set(decimal(nearlyNew))
	r.heartbeat(clientA, ofA(1))
	require.Equal(t, nearlyNew, alive())

	r.silence(clientA)
	r.expire()
	require.Equal(t, AcquireReply{OK: true}, r.acquire(ofB(1)))
	r.requireQueue()
	require.NotEqualValues(t, -1, number(t, r.s, "PTTL", heartbeats("k")))
}

// A client that has said that it polls is given the lock when it is the next, and finds
// that by its next heartbeat; no longer than it is alive.
func TestG4_MuteIsServed(t *testing.T) {
	r := newHarness(t)
	polls := func() HeartbeatReply {
		return r.beat(clientA, HeartbeatRequest{Owners: []string{ofA(1)}, Ahead: make([]time.Duration, 1), Polls: true})
	}
	r.follow(ofC(1), ofB(1), ofA(1), ofB(2))
	r.unsubscribe(r.inbox(ofA(1)))
	require.Equal(t, HeartbeatReply{}, polls())
	r.release(ofC(1))
	r.requireHeld(ofB(1), grantLease)
	require.Equal(t, HeartbeatReply{HeartbeatSoon: true}, polls(), "it is the next")
	r.messages()
	r.release(ofB(1))
	r.requireHeld(ofA(1), grantLease)
	r.requireSaid()
	r.s.Do(t, "PEXPIRE", "k", "60000")
	until := expiry(t, r.s, "k")
	require.Equal(t, HeartbeatReply{Grant: Grant{Owner: ofA(1)}}, polls())
	require.Equal(t, until, expiry(t, r.s, "k"), "it says nothing that would move its client's trust")

	r.release(ofA(1))
	r.requireHeld(ofB(2), grantLease)
	r.waits(ofA(2), ofB(3))
	r.s.Do(t, "HSET", heartbeats("k"), "polls "+clientA, decimal(serverMillis(t, r.s)))
	r.release(ofB(2))
	r.requireServed(ofB(3), ofA(2))
}

// The dead leave the heartbeats, whatever they are chosen among; the living stay, and so
// does whose turn it is.
func TestG7_HeartbeatsOfTheDeadLeave(t *testing.T) {
	r := newHarness(t)
	r.hold()
	r.s.Do(t, "HSET", heartbeats("k"), clientB, decimal(serverMillis(t, r.s)+60_000), "java", "an owner and a score")
	const dead = 300
	for i := range dead {
		r.s.Do(t, "HSET", heartbeats("k"), fmt.Sprintf("%08d-5b0c-4f57-9f2a-0d9f5f3f6a01", i), decimal(serverMillis(t, r.s)))
	}
	for range dead {
		r.s.Do(t, "HSET", heartbeats("k"), clientA, "0") // so that it is written
		r.heartbeat(clientA)
	}
	left := listed(t, r.s, "HKEYS", heartbeats("k"))
	require.Subset(t, left, []string{clientA, clientB, "java"})
	require.Less(t, len(left), 10)
}

// The label of a client is there as long as the client, and goes to the holds of its waiters.
func TestLabelsOfWaiters(t *testing.T) {
	r := newHarness(t)
	for client, label := range map[string]string{clientA: "a 1", clientB: "5"} {
		r.fairs[client] = NewFair(NewRedis(r.redis.client, RedisSettings{Label: label}), settingsOf(client))
	}
	requireLabels := func(want ...string) {
		t.Helper()
		require.Equal(t, want, listed(t, r.s, "HMGET", heartbeats("k"), "label "+clientA, "label "+clientB))
	}
	requireHolder := func(label string) {
		t.Helper()
		h, err := r.of(ofC(1)).Inspect(bounded(t), "k")
		require.NoError(t, err)
		require.Equal(t, label, h.Label)
		require.Equal(t, 1, h.Entries)
	}
	r.follow(ofC(1), ofA(1), ofB(1), ofB(2))
	requireHolder("")
	r.release(ofC(1))
	requireHolder("a 1")
	require.Equal(t, "a 1", r.heartbeat(clientB, ofB(1)).Label)
	r.release(ofA(1))
	requireHolder("5")
	requireLabels("a 1", "5")
	r.silence(clientA)
	r.heartbeat(clientC) // the fields are so few that it sees them all
	requireLabels("", "5")
	r.silence(clientB)
	r.release(ofB(1)) // drops ofB(2)
	requireLabels("", "")
	require.True(t, r.acquire(ofA(2)).OK)
	requireHolder("a 1")
}
