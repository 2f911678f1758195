package scripts

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// crowd makes ofA(0) the holder, and n owners wait behind it, of the clients A and
// B in turn, from the numbers 1 on.
func (r *harness) crowd(n int) {
	r.t.Helper()
	r.s.Do(r.t, "FLUSHALL")
	require.True(r.t, r.acquire(ofA(0)).OK)
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

// cost is how often each command has run since the server was last asked to forget,
// and the µs that it took, by its name.
func cost(t testing.TB, s *redistest.Server) (calls map[string]int, micros map[string]float64) {
	t.Helper()
	text := text(t, s, "INFO", "commandstats")
	var err error
	calls, micros = map[string]int{}, map[string]float64{}
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok || name == "info" || name == "ping" || strings.HasPrefix(name, "config") { // what the test asks, and clients at rest
			continue
		}
		count, rest, _ := strings.Cut(rest, ",usec=")
		usec, _, _ := strings.Cut(rest, ",")
		calls[name], err = strconv.Atoi(count)
		require.NoError(t, err)
		micros[name], err = strconv.ParseFloat(usec, 64)
		require.NoError(t, err)
	}
	return calls, micros
}

// What a hand-over asks of Redis does not depend on how many wait.
func TestCostIsIndependentOfTheQueue(t *testing.T) {
	r := newHarness(t)
	for _, text := range Scripts() {
		r.s.Do(t, "SCRIPT", "LOAD", text)
	}
	steps := map[string]func(n int){
		"release":                 func(int) { r.release(ofA(0)) },
		"enter":                   func(int) { r.enter(ofC(1)) },
		"heartbeat":               func(n int) { r.heartbeat(clientA, turn(n)) },
		"heartbeat on a free key": func(int) { r.expire(); r.heartbeat(clientC) },
		"acquire":                 func(int) { r.acquire(ofC(1)) },
		"leave":                   func(n int) { r.leave(turn(n / 2)) },
	}
	for name, step := range steps {
		var first map[string]int
		for _, n := range []int{10, 1000} {
			r.crowd(n)
			r.s.Do(t, "CONFIG", "RESETSTAT")
			step(n)
			calls, _ := cost(t, r.s)
			if first == nil {
				first = maps.Clone(calls)
			}
			require.Equal(t, first, calls, "%s, %d wait", name, n)
			require.LessOrEqual(t, total(calls), 19, name)
			r.said()
		}
	}
}

// Owners of a client that stand together in a long queue cost no walk through it each.
func TestCostOfNeighbours(t *testing.T) {
	r := newHarness(t)
	const many = 6000 // several times what a search reads at once
	require.True(t, r.acquire(ofC(0)).OK)
	r.enterMany(0, many)
	walks := func(step func()) int {
		r.s.Do(t, "CONFIG", "RESETSTAT")
		step()
		calls, _ := cost(t, r.s)
		return calls["lpos"] + calls["lrem"]
	}
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
	for range 2 { // the scripts are known the second time
		r.s.Do(t, "CONFIG", "RESETSTAT")
		require.True(t, r.acquire(ofA(1)).OK)
		require.True(t, r.release(ofA(1)).Ours)
	}
	calls, _ := cost(t, r.s)
	require.Equal(t, map[string]int{"evalsha": 2, "exists": 1, "hset": 1, "pexpire": 1, "hdel": 1, "lrange": 1}, calls)
}

// A client that does not listen costs one question for all of its waiters, and no message.
func TestCostOfUndelivered(t *testing.T) {
	r := newHarness(t)
	r.acquire(ofC(1))
	for i := range 50 {
		r.waits(ofA(i), ofB(i))
	}
	r.unsubscribe(r.of(clientA).Inbox("k"), r.of(clientB).Inbox("k"))
	r.s.Do(t, "CONFIG", "RESETSTAT")
	r.release(ofC(1))
	calls, _ := cost(t, r.s)
	require.Equal(t, 2, calls["pubsub|numsub"])
	require.Zero(t, calls["publish"])
	require.Equal(t, 2, calls["hset"])
}

func total(calls map[string]int) (n int) {
	for name, c := range calls {
		if name != "evalsha" {
			n += c
		}
	}
	return n
}
