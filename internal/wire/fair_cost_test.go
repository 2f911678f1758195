package wire

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// crowd makes ofA(0) the holder, and n owners wait behind it, of the clients A and
// B in turn, from the numbers 1 on.
func (r *harness) crowd(n int) {
	r.t.Helper()
	r.s.Do(r.t, "FLUSHALL")
	r.acquire(ofA(0))
	for i := 1; i <= n; i++ {
		r.enter(turn(i))
	}
}

func turn(i int) string {
	if i%2 == 0 {
		return ofA(i)
	}
	return ofB(i)
}

// cost is how often each command was called since the server was last asked to forget, by its
// name, refusals included.
func cost(t testing.TB, s *redistest.Server) map[string]int {
	t.Helper()
	calls, refused := redistest.Calls(text(t, s, "INFO", "commandstats"))
	for name, n := range refused {
		calls[name] += n
	}
	maps.DeleteFunc(calls, func(name string, _ int) bool { // what the test asks, and clients at rest
		return name == "info" || name == "ping" || strings.HasPrefix(name, "config")
	})
	return calls
}

// costOf is how often each command is called in a step.
func (r *harness) costOf(step func()) map[string]int {
	r.t.Helper()
	r.s.Do(r.t, "CONFIG", "RESETSTAT")
	step()
	return cost(r.t, r.s)
}

// What a grant asks of Redis does not depend on how many wait.
func TestCostIsIndependentOfTheQueue(t *testing.T) {
	r := newHarness(t)
	for _, text := range scripts.Scripts() {
		r.s.Do(t, "SCRIPT", "LOAD", text)
	}
	for name, step := range map[string]func(n int){
		"release":                 func(int) { r.release(ofA(0)) },
		"enter":                   func(int) { r.enter(ofC(1)) },
		"heartbeat":               func(n int) { r.heartbeat(clientA, turn(n)) },
		"heartbeat on a free key": func(int) { r.expire(); r.heartbeat(clientC) },
		"acquire":                 func(int) { r.acquire(ofC(1)) },
		"leave":                   func(n int) { r.leave(turn(n / 2)) },
	} {
		costs := []map[string]int{}
		for _, n := range []int{10, 1000} {
			r.crowd(n)
			calls := r.costOf(func() { step(n) })
			costs = append(costs, calls)
			total := -calls["evalsha"]
			for _, count := range calls {
				total += count
			}
			require.LessOrEqual(t, total, 20, name)
			r.messages()
		}
		require.Equal(t, costs[0], costs[1], name)
	}
}

// Owners of a client that stand together in a long queue cost no walk through it each.
func TestCostOfNeighbours(t *testing.T) {
	r := newHarness(t)
	const many = 6000 // several times what a search reads at once
	r.acquire(ofC(0))
	r.enterMany(0, many)
	walks := func(step func()) int { calls := r.costOf(step); return calls["lpos"] + calls["lrem"] }
	for _, at := range []int{0, many / 2, many - 100} {
		owners := []string{}
		for i := range 100 {
			owners = append(owners, ofA(at+i))
		}
		r.s.Do(t, "ZADD", scores("k"), "9e15", "a stray")
		require.LessOrEqual(t, walks(func() { require.Empty(t, r.heartbeat(clientA, owners...).Absent) }), 1)
		r.s.Do(t, "ZREM", scores("k"), "a stray")
		require.LessOrEqual(t, walks(func() { r.leave(owners...) }), 3)
		require.Len(t, r.heartbeat(clientA, owners...).Absent, 100)
	}
	require.Len(t, r.waiting(), many-300)
}

// Where nobody waits, a lock and unlock is little more than a plain one.
func TestCostOfNobodyWaiting(t *testing.T) {
	r := newHarness(t)
	pass := func() { require.True(t, r.acquire(ofA(1)).OK && r.release(ofA(1)).Ours) }
	pass() // the scripts are known now
	require.Equal(t, map[string]int{"evalsha": 2, "exists": 1, "hset": 1, "pexpire": 1, "hdel": 1, "lrange": 1}, r.costOf(pass))
}

// A client that does not listen costs one question for all of its waiters: no message, and no write.
func TestCostOfUndelivered(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofC(1))
	for i := range 50 {
		r.waits(ofA(i), ofB(i))
	}
	r.unsubscribe(r.inbox(clientA), r.inbox(clientB))
	calls := r.costOf(func() { r.release(ofC(1)) })
	asked := calls["pubsub|numsub"] + calls["pubsub"] // as Redis 6.2 calls it
	require.Equal(t, []int{2, 0, 0}, []int{asked, calls["publish"], calls["hset"]})
}
