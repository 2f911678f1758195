package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortLeases are renewed and end within the time of a test.
var shortLeases = options{Lease: 1500 * time.Millisecond, WaiterTTL: time.Second, GrantLease: time.Second}

// renewedLeases leave the watchdogs time enough where the machine is busy.
var renewedLeases = options{Lease: 3 * time.Second}

// Each side's watchdog keeps its lock for as long as it is held, while the other waits: a
// nested entry like the first, and what is left of it.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	s, agents := start(t, renewedLeases, twoAgents...)
	bothWays(t, s, agents, allKinds, func(p pair) {
		p.Parallel()
		owner := p.holder.lock().Text
		p.holder.lock()
		wait := p.waiter.triesFor(agentWait)
		p.waiting(1)
		for entries := 2; entries > 0; entries-- {
			time.Sleep(renewedLeases.Lease * 3 / 2) // it outlives a lease
			p.waiter.otherThread().sees(owner, entries)
			p.holder.unlock()
		}
		got(p, wait)
		p.waiter.unlock()
	})
}

// A holder that was stopped for longer than its lease has lost the lock, and finds
// out when it goes on: it neither renews nor gives back what the other has now.
func TestPausedHolder(t *testing.T) {
	victims(t, shortLeases, mainKinds, func(p pair) {
		p.holder.lock()
		wait := p.waiter.waits()
		p.waiting(1)
		p.holder.pause()
		owner := got(p, wait).Text
		p.holder.resume()
		time.Sleep(shortLeases.Lease) // for a renewal, or two
		p.holder.refused()
		p.holder.sees(owner, 1)
		p.waiter.unlock()
	})
}

// A killed waiter does not keep the lock from live ones, of either language; TestFair_DeadHead
// has the fair lock.
func TestKilledWaiter(t *testing.T) {
	victims(t, longLeases, mainKinds[:1], func(p pair) {
		holder, dead := p.waiter, p.holder
		holder.lock()
		dead.waits()
		p.waiting(1)
		next := holder.otherThread()
		wait := next.waits()
		dead.kill()
		holder.unlock()
		released := time.Now()
		got(p, wait)
		require.Less(p, time.Since(released), 8*time.Second)
		next.unlock()
	})
}

// A Go waiter that gives up leaves nothing behind. (A Java thread that is
// interrupted may leave its subscription, and its place in the queue.)
func TestGivesUp(t *testing.T) {
	s, agents := start(t, longLeases, twoAgents...)
	for _, kind := range mainKinds {
		goHand := agents[0].hand(t, kind, kind, kind)
		javaHand := agents[1].hand(t, kind, kind, kind)
		javaHand.lock()
		wait := goHand.waits()
		awaitWaiters(t, s, kind, kind, 1)
		goHand.interrupt()
		require.Equal(t, interrupted, answerOf(t, wait).Error)
		awaitWaiters(t, s, kind, kind, 0)
		javaHand.unlock()
		tidy(t, s, kind)
	}
}

// A Go holder learns at its next renewal that Java has taken its lock away, and is
// told of it. (Redisson does not tell its holder.)
func TestForcedAway(t *testing.T) {
	s, agents := start(t, shortLeases, twoAgents...)
	for _, kind := range mainKinds {
		goHand := agents[0].hand(t, kind, kind, kind)
		javaHand := agents[1].hand(t, kind, kind, kind)
		goHand.lock()
		lost := goHand.send(goHand.command("lost"))
		require.True(t, javaHand.forceUnlock())
		javaHand.lock()
		got(t, lost)
		goHand.refused()
		javaHand.unlock()
		tidy(t, s, kind)
	}
}

// victims is bothWays with an agent of its own for each holder, to which something
// happens.
func victims(t *testing.T, o options, kinds []string, run func(pair)) {
	s, agents := start(t, o, twoAgents...)
	for _, kind := range kinds {
		for i, lang := range twoAgents {
			t.Run(kind+"/"+lang, func(t *testing.T) {
				t.Parallel()
				key := t.Name()
				victim := startOn(t, s, o, lang)[0]
				p := pair{
					T: t, s: s, kind: kind, key: key,
					holder: victim.hand(t, "h", kind, key), waiter: agents[1-i].hand(t, "w "+key, kind, key),
				}
				run(p)
				tidy(t, s, key)
			})
		}
	}
}
