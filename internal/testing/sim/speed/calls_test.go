package speed_test

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	lua "github.com/holdfast-go/holdfast/scripts"
)

// calls are the commands that a process has sent to all its servers, by name.
type calls struct {
	mu  sync.Mutex
	all map[string]int // guarded by mu
}

// count counts those of a process.
func (f *fleet) count(p int) *calls {
	c := &calls{all: make(map[string]int)}
	for _, l := range f.world.Links[p] {
		l.OnRequest(func(cmd []string) redistest.Verdict {
			c.mu.Lock()
			defer c.mu.Unlock()
			switch name := strings.ToUpper(cmd[0]); name {
			case "HELLO", "CLIENT", "PING", "INFO": // keep a connection, and see what a server is
			default:
				c.all[name]++
			}
			return redistest.Pass
		})
	}
	return c
}

// of says which calls a step takes, with those that it leaves to the background.
func (c *calls) of(step func()) map[string]int {
	c.taken()
	step()
	time.Sleep(20 * trip)
	return c.taken()
}

// taken are those since the last time.
func (c *calls) taken() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer clear(c.all)
	return maps.Clone(c.all)
}

// How many calls each step takes; of multilock, to each of its five nodes.
func TestCalls(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		f := open(t, kind, 1, 2)
		for _, links := range f.world.Links { // no node is ever later than another
			for _, l := range links {
				l.SetJitter(func() time.Duration { return trip / 2 })
			}
		}
		for _, s := range f.world.Servers {
			for _, text := range lua.Scripts() {
				s.Do(t, "SCRIPT", "LOAD", text)
			}
		}
		each := len(f.world.Servers)
		scripts := func(n int) map[string]int { return map[string]int{"EVALSHA": n * each} }
		own, other := f.count(0), f.count(1)
		var e *holdfast.Lease
		require.Equal(t, scripts(1), own.of(func() { e = f.lock(0, "k") }), "lock")
		var nested *holdfast.Lease
		require.Equal(t, scripts(1), own.of(func() {
			nested = redistest.Must(f.lockers[0].Lock(e.Bind(t.Context()), "k"))(t)
		}), "nested lock")
		require.Equal(t, scripts(1), own.of(func() { require.NoError(t, nested.Unlock(t.Context())) }), "nested unlock")
		require.Equal(t, scripts(1), own.of(func() { time.Sleep(lease / 3) }), "renewal, once in a third of a lease")

		// A waiter asks before it listens and after it; later in the first second, whether it is heard. On a
		// quorum it asks again for each node that confirms later than the others.
		got := make(chan *holdfast.Lease, 1)
		wait := func() { go func() { got <- f.lock(1, "k") }() }
		waiting := other.of(wait)
		require.Equal(t, each, waiting["SUBSCRIBE"], "wait")
		require.GreaterOrEqual(t, waiting["EVALSHA"], 2*each, "wait")
		require.LessOrEqual(t, waiting["EVALSHA"], (1+each)*each, "wait")
		woken := other.of(func() {
			require.Equal(t, scripts(1), own.of(func() { require.NoError(t, e.Unlock(t.Context())) }), "unlock")
			e = <-got
		})
		require.LessOrEqual(t, woken["EVALSHA"], each, "wake-up")

		require.NoError(t, e.Unlock(t.Context()))

		// A waiter of the same process is served in memory. A fair one enters the queue, and the release serves it; one of a
		// semaphore asks for a permit of its own first.
		e = f.lock(1, "k")
		memory := other.of(func() {
			wait()
			synctest.Wait()
			time.Sleep(2 * trip)
			require.NoError(t, e.Unlock(t.Context()))
			e = <-got
		})
		switch kind {
		case "fair":
			require.Equal(t, scripts(2), memory, "handover")
		case "semaphore":
			require.Equal(t, map[string]int{"EVALSHA": 1, "SUBSCRIBE": 1, "UNSUBSCRIBE": 1}, memory, "handover")
		default:
			require.Empty(t, memory, "handover in memory")
		}
		require.NoError(t, e.Unlock(t.Context()))
	})
}
