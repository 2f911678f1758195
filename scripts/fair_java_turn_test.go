package scripts

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whose turn it is keeps it for 3 s if the message had a receiver, for 250 ms if it may not have
// listened yet; another probe does not lengthen that, and touches no other waiter.
func TestJava_TheTurnEnds(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofA(1))
	r.javaWaits(ofJ(1))
	require.False(t, r.javaTries(ofK(1))) // does not listen
	r.waits(ofB(1))
	others := []int64{r.score(ofK(1)), r.score(ofB(1))}
	r.requireTurn(ofJ(1), 3*time.Second, func() { r.release(ofA(1)) })
	turn := r.turnOf(ofJ(1))
	for range 3 {
		require.True(t, r.heartbeat(clientB).ProbeSoon)
	}
	require.Equal(t, turn, r.turnOf(ofJ(1)))
	require.Equal(t, others, []int64{r.score(ofK(1)), r.score(ofB(1))})
	require.True(t, r.javaTries(ofJ(1)))

	r.javaUnlocks(ofJ(1))
	r.requireTurn(ofK(1), 250*time.Millisecond, func() { require.True(t, r.heartbeat(clientC).ProbeSoon) })
	until(t, func() bool { return !r.heartbeat(clientC).ProbeSoon })
	r.requireHeld(ofB(1), grantLease)
	r.requireQueue()

	// One without a score, which Java itself would never drop, gets a turn, too.
	r.s.Do(t, "RPUSH", queue("k"), ofJ(9))
	r.requireTurn(ofJ(9), 250*time.Millisecond, func() { require.True(t, r.release(ofB(1)).ProbeSoon) })

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
	turn, err := strconv.ParseInt(ends, 10, 64)
	require.NoError(r.t, err)
	return turn
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
		require.False(t, r.javaTries(ofJ(1)))
		r.requireTurn(ofJ(1), 250*time.Millisecond, func() { require.True(t, r.release(ofA(1)).ProbeSoon) })
		require.Positive(t, number(t, r.s, "PTTL", heartbeats("k")), "kept for ever")
		until(t, func() bool { return !r.heartbeat(clientB).ProbeSoon })
		r.requireQueue()
		r.acquire(ofA(1))
	}
}
