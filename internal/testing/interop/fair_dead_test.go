package interop

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// deadQueue is a fair lock that is held, with a head to which something happens and
// four behind it.
type deadQueue struct {
	*testing.T
	s      redis
	holder hand
	head   hand
	wait   <-chan answer // the head's
	behind line
}

// deadHeads puts an agent of each language at the head of four queues: for each language of
// the holder, with either language next to the head.
func deadHeads(t *testing.T, run func(t *testing.T, head *agent, queues []deadQueue)) {
	needJava(t)
	o := options{Lease: 30 * time.Second, WaiterTTL: 4 * time.Second, GrantLease: 4 * time.Second}
	for _, lang := range twoAgents {
		t.Run(lang+"Head", func(t *testing.T) {
			t.Parallel()
			s, agents := start(t, o, inGo, inJava, lang)
			var queues []deadQueue
			for i, holder := range agents[:2] {
				for j, next := range agents[:2] {
					key := holder.lang + "Holds" + next.lang + "IsNext"
					queues = append(queues, newDeadQueue(t, s, key, agents[i], agents[2], next, agents[1-j]))
				}
			}
			run(t, agents[2], queues)
		})
	}
}

func newDeadQueue(t *testing.T, s redis, key string, holder, head, next, last *agent) deadQueue {
	d := deadQueue{T: t, s: s}
	d.holder = holder.hand(t, key+" holder", "fair", key)
	d.holder.lock()
	d.head = head.hand(t, key+" head", "fair", key)
	d.wait = d.head.waits()
	awaitWaiters(t, s, "fair", key, 1)
	d.behind = line{t: t, s: s, ahead: 1}
	for i, a := range []*agent{next, last, next, last} {
		d.behind.enter(a.hand(t, key+strconv.Itoa(i), "fair", key))
	}
	return d
}

// allServed gives all locks back, and requires that those behind the heads are
// served in their order, the first of them within a time.
func allServed(queues []deadQueue, most time.Duration) {
	for _, d := range queues {
		d.holder.unlock()
	}
	released := time.Now()
	for _, d := range queues {
		got(d, d.behind.waits[0])
		require.Less(d, time.Since(released), most, d.head.key)
	}
	for _, d := range queues {
		d.behind.hands[0].unlock()
		d.behind.hands, d.behind.waits = d.behind.hands[1:], d.behind.waits[1:]
		d.behind.served()
	}
}

// A dead head costs those behind it a moment: Java 250 ms, as its message has no receiver,
// Go the time until its client's heartbeat is stale, and one heartbeat.
func TestFair_DeadHead(t *testing.T) {
	t.Parallel()
	deadHeads(t, func(t *testing.T, head *agent, queues []deadQueue) {
		head.kill()
		allServed(queues, 20*time.Second)
		for _, d := range queues {
			tidy(t, d.s, d.head.key)
		}
	})
}

// A head that was stopped has its turn, since it may live: Java for 3 s, Go for one
// grant lease. When it goes on it enters again, at the end.
func TestFair_FrozenHead(t *testing.T) {
	t.Parallel()
	deadHeads(t, func(t *testing.T, head *agent, queues []deadQueue) {
		head.pause()
		allServed(queues, 20*time.Second)
		head.resume()
		for _, d := range queues {
			got(t, d.wait)
			d.head.unlock()
			tidy(t, d.s, d.head.key)
		}
	})
}

// Redisson leaves the place of a thread that was interrupted in the queue. It costs
// those behind it a Java turn.
func TestFair_InterruptedJavaHead(t *testing.T) {
	s, agents := start(t, longLeases, twoAgents...)
	for _, next := range agents {
		t.Run(next.lang+"IsNext", func(t *testing.T) {
			key := t.Name()
			holder := agents[0].hand(t, key+" holder", "fair", key)
			holder.lock()
			head := agents[1].hand(t, key+" head", "fair", key)
			wait := head.waits()
			awaitWaiters(t, s, "fair", key, 1)
			head.interrupt()
			require.Equal(t, interrupted, answerOf(t, wait).Error)
			require.EqualValues(t, 1, number(t, s, "LLEN", locktest.QueueOf(key)), "Redisson has changed")
			behind := line{t: t, s: s, ahead: 1}
			behind.enter(next.hand(t, key+" next", "fair", key))
			behind.enter(agents[0].hand(t, key+" last", "fair", key)) // of Go: somebody has to look
			holder.unlock()
			released := time.Now()
			locktest.Await(t, func() bool { return len(behind.waits[0]) > 0 })
			require.Less(t, time.Since(released), 20*time.Second)
			behind.served()
			tidy(t, s, key)
		})
	}
}
