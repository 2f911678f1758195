package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Go and Java in one queue: each gets its turn, in the order of the queue.
func TestJava_InOrder(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	r.javaWaits(ofJ(1))
	e := r.enter(ofA(2))
	require.True(t, e.Java)
	require.False(t, e.ProbeSoon)
	r.subscribe(r.ownerChannel(ofA(2)))
	r.javaWaits(ofK(1))
	r.waits(ofB(1))
	order := []string{ofJ(1), ofA(2), ofK(1), ofB(1)}
	r.requireQueue(order...)

	// A Go release onto a Java head leaves the lock free for it, and for nobody else.
	require.Equal(t, Passed{Ours: true, ProbeSoon: true}, r.release(ofA(1)))
	r.requireSaid(r.woken(ofJ(1)))
	r.requireFree()
	r.requireQueue(order...)
	require.Equal(t, Probed{ProbeSoon: true}, r.heartbeat(clientB, ofB(1)))
	require.Equal(t, Acquired{Remaining: time.Millisecond}, r.acquire(ofC(1)))
	require.False(t, r.javaTries(ofK(1)))
	e = r.enter(ofC(2))
	require.True(t, e.Java && e.ProbeSoon)
	require.True(t, r.javaTries(ofJ(1)))
	order = []string{ofA(2), ofK(1), ofB(1), ofC(2)}
	r.requireQueue(order...)
	r.said()

	// A Java release onto a Go head wakes it by its own channel; then it probes.
	r.javaUnlocks(ofJ(1))
	r.requireSaid(r.woken(ofA(2)))
	require.False(t, r.javaTries(ofK(1)))
	require.Equal(t, Probed{Grant: granted(ofA(2))}, r.heartbeat(clientA, ofA(2)))

	// Given up without a word: a probe finds the next.
	require.Equal(t, Passed{Ours: true, ProbeSoon: true}, r.release(ofA(2)))
	r.javaGivesUp(ofK(1))
	r.said()
	require.Equal(t, Probed{}, r.heartbeat(clientC, ofC(2)))
	r.requireSaid(grantMessage(ofB(1)))
	require.Equal(t, Passed{Ours: true}, r.release(ofB(1)))
	r.requireSaid(grantMessage(ofC(2)))
	r.requireQueue()
}

func TestJava_HolderAndTail(t *testing.T) {
	r := newHarness(t)
	require.True(t, r.javaTries(ofJ(1)))
	e := r.enter(ofA(1))
	require.Equal(t, Entered{Places: []Place{Waiting}, Tail: 1, Java: true, Distance: 30 * time.Second}, e)
	e = r.enter(ofB(1)) // behind our own
	require.Equal(t, Entered{Places: []Place{Waiting}, Tail: 2, Java: true, Distance: 30 * time.Second}, e)
	r.javaWaits(ofJ(2))
	e = r.enter(ofB(2), ofB(3)) // behind Java
	require.Equal(t, Entered{Places: []Place{Waiting, Waiting}, Tail: 5, Java: true, Distance: 4 * javaWait}, e)
	e = r.enter(ofA(2)) // behind our own, behind Java
	require.True(t, e.Java)
	require.InDelta(t, 4*javaWait, e.Distance, float64(slack))
	for owner, want := range map[string]time.Duration{
		ofA(1): 30 * time.Second, ofB(1): 30 * time.Second, ofJ(2): 330 * time.Second,
		ofB(2): 4 * javaWait, ofB(3): 4 * javaWait, ofA(2): 4 * javaWait,
	} {
		require.InDelta(t, want, r.ahead(owner), float64(slack), owner)
	}

	r.s.Do(t, "FLUSHALL") // no Java anywhere
	r.acquire(ofC(1))
	e = r.enter(ofA(1))
	require.False(t, e.Java)
	e = r.enter(ofA(2))
	require.False(t, e.Java)
	require.Equal(t, 30*time.Second, e.Distance)
}

// A Java waiter may mean to wait longer than anybody can count.
func TestJava_WaitsForEver(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	_, acquired := r.java(javaTry, ofJ(1), 1<<63-1)
	require.False(t, acquired)
	e := r.enter(ofB(1))
	require.Equal(t, []Place{Waiting}, e.Places)
	require.Positive(t, e.Distance)
	r.s.Do(t, "ZADD", scores("k"), "inf", ofB(1))
	require.Equal(t, []Place{Waiting}, r.enter(ofB(2)).Places)
	r.s.Do(t, "ZADD", scores("k"), "-inf", ofB(2))
	require.Equal(t, []Place{Waiting}, r.enter(ofB(3)).Places)
}

// A Java program that let its turn pass is taken for dead: its others are dropped
// at once, up to one that listens or belongs to another.
func TestJava_DeadHeadGoesWithItsLike(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	for i := 1; i < 5; i++ {
		require.False(t, r.javaTries(ofJ(i)))
	}
	r.javaWaits(ofJ(5))
	for i := 6; i < 8; i++ {
		require.False(t, r.javaTries(ofJ(i)))
	}
	require.False(t, r.javaTries(ofK(1)))
	r.waits(ofB(1))
	r.s.Do(t, "ZADD", scores("k"), "1", ofJ(1))
	require.True(t, r.release(ofA(1)).ProbeSoon)
	r.requireQueue(ofJ(5), ofJ(6), ofJ(7), ofK(1), ofB(1))
	r.requireSaid(r.woken(ofJ(5)))

	r.s.Do(t, "ZADD", scores("k"), "1", ofJ(5))
	// Another program may be about to listen.
	r.requireTurn(ofK(1), 250*time.Millisecond, func() { require.True(t, r.heartbeat(clientB).ProbeSoon) })
	r.requireQueue(ofK(1), ofB(1))

	// The dead of ours before it are dropped, and then it has its turn.
	r.s.Do(t, "FLUSHALL")
	r.acquire(ofA(1))
	r.waits(ofB(1), ofB(2))
	r.javaWaits(ofJ(10))
	r.silence(clientB)
	require.True(t, r.release(ofA(1)).ProbeSoon)
	r.requireQueue(ofJ(10))
	r.requireSaid(r.woken(ofJ(10)))
}

// In one heartbeat of several locks, what one says of a Java program is not held
// against it at another.
func TestJava_EachLockByItself(t *testing.T) {
	r := newHarness(t)
	for _, key := range []string{"k", "l"} {
		for i := 1; i < 3; i++ {
			r.s.Do(t, "RPUSH", queue(key), ofJ(i))
			r.s.Do(t, "ZADD", scores(key), "9e15", ofJ(i))
		}
	}
	r.s.Do(t, "ZADD", scores("k"), "1", ofJ(1))
	probed := make([]Probed, 2)
	require.NoError(t, r.of(clientA).Heartbeat(bounded(t), []Heartbeat{{Key: "k"}, {Key: "l"}}, probed))
	require.Equal(t, []Probed{{}, {ProbeSoon: true}}, probed)
	require.EqualValues(t, 2, number(t, r.s, "LLEN", queue("l")))
}

// A Go waiter that nobody could tell of a grant keeps its turn before Java, too.
func TestJava_BehindOneOfOursThatDoesNotHear(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	r.waits(ofB(1))
	r.javaWaits(ofJ(1))
	r.unsubscribe(r.of(clientB).Inbox("k"))
	require.True(t, r.release(ofA(1)).ProbeSoon, "probe again soon")
	r.requireSaid()
	require.False(t, r.javaTries(ofJ(1)))
	require.Equal(t, granted(ofB(1)), r.heartbeat(clientB).Grant)
}

// Java subtracts from all that are left, ours included, and then drops heads whose
// score has passed: ours outlast that, and heartbeats move them forward again.
func TestJava_OursSurviveSubtraction(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofC(1))
	r.javaWaits(ofJ(1), ofJ(2), ofJ(3))
	distance := r.enter(ofA(1)).Distance
	r.javaWaits(ofK(1))
	r.waits(ofB(1))
	r.javaGivesUp(ofJ(2))
	r.release(ofC(1))
	for _, next := range []string{ofJ(1), ofJ(3)} {
		require.True(t, r.javaTries(next))
		r.javaUnlocks(next)
	}
	require.False(t, r.javaTries(ofK(1)), "it would drop a stale head")
	r.requireQueue(ofA(1), ofK(1), ofB(1))
	require.InDelta(t, distance-3*javaWait, r.ahead(ofA(1)), float64(slack))

	probed := make([]Probed, 1)
	asked := []Heartbeat{{Key: "k", Owners: []string{ofA(1)}, Distances: []time.Duration{distance}}}
	r.hold()
	require.NoError(t, r.of(clientA).Heartbeat(bounded(t), asked, probed))
	require.InDelta(t, distance, r.ahead(ofA(1)), float64(slack))
}

// Behind a Java waiter whose score was lowered when it got the turn, its score
// says nothing of what it will subtract.
func TestJava_OursSurviveBehindATurn(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofC(1))
	r.javaWaits(ofJ(1))
	r.release(ofC(1))
	e := r.enter(ofA(1))
	require.Equal(t, 2*javaWait, e.Distance)
	require.True(t, r.javaTries(ofJ(1)))
	require.False(t, r.javaTries(ofK(1)), "it would drop a stale head")
	r.requireQueue(ofA(1), ofK(1))
	r.javaUnlocks(ofJ(1))
	require.Equal(t, granted(ofA(1)), r.heartbeat(clientA, ofA(1)).Grant)
}
