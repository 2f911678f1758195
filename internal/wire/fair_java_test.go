package wire

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJava_HolderAndTail(t *testing.T) {
	r := newHarness(t)
	require.True(t, r.javaTries(ofJ(1)))
	entered := func(tail int, ahead time.Duration) EnterReply {
		return EnterReply{States: []OwnerState{Waiting}, Place: tail, Java: true, Ahead: ahead}
	}
	require.Equal(t, entered(1, 30*time.Second), r.enter(ofA(1)))
	require.Equal(t, entered(2, 30*time.Second), r.enter(ofB(1))) // behind our own
	r.javaWaits(ofJ(2))
	two := EnterReply{States: []OwnerState{Waiting, Waiting}, Place: 5, Java: true, Ahead: 4 * javaWait}
	require.Equal(t, two, r.enter(ofB(2), ofB(3))) // behind Java
	e := r.enter(ofA(2))                           // behind our own, behind Java
	require.True(t, e.Java)
	require.InDelta(t, 4*javaWait, e.Ahead, float64(slack))
	for owner, want := range map[string]time.Duration{
		ofA(1): 30 * time.Second, ofB(1): 30 * time.Second, ofJ(2): 330 * time.Second,
		ofB(2): 4 * javaWait, ofB(3): 4 * javaWait, ofA(2): 4 * javaWait,
	} {
		require.InDelta(t, want, r.ahead(owner), float64(slack), owner)
	}

	r.s.Do(t, "FLUSHALL") // no Java anywhere
	r.acquire(ofC(1))
	for tail, owner := range []string{ofA(1), ofA(2)} {
		require.Equal(t, EnterReply{States: []OwnerState{Waiting}, Place: tail + 1, Ahead: 30 * time.Second}, r.enter(owner))
	}
}

// A Java waiter may mean to wait longer than anybody can count.
func TestJava_WaitsForEver(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	require.False(t, r.java(javaTry, ofJ(1), 1<<63-1))
	e := r.enter(ofB(1))
	require.Equal(t, []OwnerState{Waiting}, e.States)
	require.Positive(t, e.Ahead)
	r.s.Do(t, "ZADD", scores("k"), "inf", ofB(1))
	r.waits(ofB(2))
	r.s.Do(t, "ZADD", scores("k"), "-inf", ofB(2))
	r.waits(ofB(3))
}

// A Java program that let its turn pass is taken for dead: its others are dropped
// at once, up to one that listens or belongs to another.
func TestJava_DeadHeadGoesWithItsLike(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	r.javaEnters(ofJ(1), ofJ(2), ofJ(3), ofJ(4))
	r.javaWaits(ofJ(5))
	r.javaEnters(ofJ(6), ofJ(7), ofK(1))
	r.waits(ofB(1))
	r.s.Do(t, "ZADD", scores("k"), "1", ofJ(1))
	require.True(t, r.release(ofA(1)).HeartbeatSoon)
	r.requireQueue(ofJ(5), ofJ(6), ofJ(7), ofK(1), ofB(1))
	r.requireSaid(r.woken(ofJ(5)))

	r.s.Do(t, "ZADD", scores("k"), "1", ofJ(5))
	// Another program may be about to listen.
	r.requireTurn(ofK(1), 250*time.Millisecond, func() { require.True(t, r.heartbeat(clientB).HeartbeatSoon) })
	r.requireQueue(ofK(1), ofB(1))

	// The dead of ours before it are dropped, and then it has its turn.
	r.s.Do(t, "FLUSHALL")
	r.acquire(ofA(1))
	r.waits(ofB(1), ofB(2))
	r.javaWaits(ofJ(10))
	r.silence(clientB)
	require.True(t, r.release(ofA(1)).HeartbeatSoon)
	r.requireQueue(ofJ(10))
	r.requireSaid(r.woken(ofJ(10)))
}

// In one heartbeat of several locks, what one says of a Java program is not held
// against it at another.
func TestJava_EachLockByItself(t *testing.T) {
	r := newHarness(t)
	for _, key := range []string{"k", "l"} {
		r.s.Do(t, "RPUSH", queue(key), ofJ(1), ofJ(2))
		r.s.Do(t, "ZADD", scores(key), "9e15", ofJ(1), "9e15", ofJ(2))
	}
	r.s.Do(t, "ZADD", scores("k"), "1", ofJ(1))
	replies := make([]HeartbeatReply, 2)
	require.NoError(t, r.of(clientA).Heartbeat(bounded(t), []HeartbeatRequest{{Key: "k"}, {Key: "l"}}, replies))
	require.Equal(t, []HeartbeatReply{{}, {HeartbeatSoon: true}}, replies)
	require.EqualValues(t, 2, number(t, r.s, "LLEN", queue("l")))
}

// A Go waiter that nobody could tell of a grant keeps its turn before Java, too.
func TestJava_BehindOneOfOursThatDoesNotHear(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	r.waits(ofB(1))
	r.javaWaits(ofJ(1))
	r.unsubscribe(r.inbox(clientB))
	require.True(t, r.release(ofA(1)).HeartbeatSoon, "a heartbeat should follow soon")
	r.requireSaid()
	require.False(t, r.javaTries(ofJ(1)))
	require.True(t, r.enter(ofC(1)).HeartbeatSoon, "this call has served nobody, either")
	require.Equal(t, granted(ofB(1)), r.heartbeat(clientB).Grant)
}

// Whose turn it is keeps it for 3 s if the message had a receiver, for 250 ms if it may not have
// listened yet; another heartbeat does not lengthen that, and touches no other waiter.
func TestJava_TheTurnEnds(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	r.javaWaits(ofJ(1))
	r.javaEnters(ofK(1))
	r.waits(ofB(1))
	others := []int64{r.score(ofK(1)), r.score(ofB(1))}
	r.requireTurn(ofJ(1), 3*time.Second, func() { r.release(ofA(1)) })
	turn := r.turnOf(ofJ(1))
	for range 3 {
		require.True(t, r.heartbeat(clientB).HeartbeatSoon)
	}
	require.Equal(t, turn, r.turnOf(ofJ(1)))
	require.Equal(t, others, []int64{r.score(ofK(1)), r.score(ofB(1))})
	require.True(t, r.javaTries(ofJ(1)))

	r.javaUnlocks(ofJ(1))
	r.requireTurn(ofK(1), 250*time.Millisecond, func() { require.True(t, r.heartbeat(clientC).HeartbeatSoon) })
	r.endTurn(ofK(1))
	require.False(t, r.heartbeat(clientC).HeartbeatSoon)
	r.requireServed(ofB(1))

	// One without a score, which Java itself would never drop, gets a turn, too.
	r.s.Do(t, "RPUSH", queue("k"), ofJ(9))
	r.requireTurn(ofJ(9), 250*time.Millisecond, func() { require.True(t, r.release(ofB(1)).HeartbeatSoon) })

	// An earlier end is kept.
	r.s.Do(t, "ZADD", scores("k"), decimal(serverMillis(t, r.s)+2000), ofJ(9))
	r.subscribe(r.ownerChannel(ofJ(9)))
	r.heartbeat(clientC)
	require.LessOrEqual(t, r.ahead(ofJ(9)), 2*time.Second)
}

// turnOf is until when a Java waiter has its turn, as noted.
func (r *harness) turnOf(owner string) int64 {
	r.t.Helper()
	noted := text(r.t, r.s, "HGET", heartbeats("k"), "java")
	ends, ok := strings.CutPrefix(noted, owner+" "+decimal(r.score(owner))+" ")
	require.True(r.t, ok, noted)
	return must(strconv.ParseInt(ends, 10, 64))(r.t)
}

// endTurn has the turn of a Java waiter end now.
func (r *harness) endTurn(owner string) {
	r.t.Helper()
	r.s.Do(r.t, "HSET", heartbeats("k"), "java", fmt.Sprintf("%s %d %d", owner, r.score(owner), serverMillis(r.t, r.s)))
}

// requireTurn requires that the turn of a Java waiter ends so long after what do
// does, and that Java sees that 20 s later.
func (r *harness) requireTurn(owner string, d time.Duration, do func()) {
	r.t.Helper()
	before := serverMillis(r.t, r.s)
	do()
	after := serverMillis(r.t, r.s)
	turn := r.turnOf(owner)
	require.GreaterOrEqual(r.t, turn, before+d.Milliseconds())
	require.LessOrEqual(r.t, turn, after+d.Milliseconds())
	require.Equal(r.t, turn+20_000, r.score(owner))
}

// An owner that has let a turn pass and enters again, as Java does, has a new one.
func TestJava_ANewTurn(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	for range 2 {
		r.javaEnters(ofJ(1))
		r.requireTurn(ofJ(1), 250*time.Millisecond, func() { require.True(t, r.release(ofA(1)).HeartbeatSoon) })
		require.Positive(t, number(t, r.s, "PTTL", heartbeats("k")), "kept forever")
		r.endTurn(ofJ(1))
		require.False(t, r.heartbeat(clientB).HeartbeatSoon)
		r.requireQueue()
		r.acquire(ofA(1))
	}
}
