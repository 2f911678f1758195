package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortLeases are renewed and end within the time of a test.
var shortLeases = options{Lease: 1500 * time.Millisecond, Stale: time.Second, FirstLease: time.Second}

// renewedLeases leave the watchdogs time enough where the machine is busy.
var renewedLeases = options{Lease: 3 * time.Second}

// Each side's watchdog keeps its lock for as long as it is held, while the other
// waits.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	s, agents := start(t, renewedLeases, twoAgents...)
	bothWays(t, s, agents, allKinds, func(p pair) {
		p.Parallel()
		owner := p.holder.lock().Text
		wait := p.waiter.triesFor(agentWait)
		p.waiting(1)
		lowest := int64(renewedLeases.Lease / time.Millisecond)
		for end := time.Now().Add(2 * renewedLeases.Lease); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			lowest = min(lowest, number(p, s, "PTTL", p.key))
		}
		require.Less(p, lowest, int64(renewedLeases.Lease/time.Millisecond), "it was never renewed")
		require.Positive(p, lowest)
		p.waiter.otherThread().sees(owner, 1)
		p.holder.unlock()
		got(p, wait)
		p.waiter.unlock()
	})
}

// A nested entry of the one side is renewed like the first, and so is what is left
// of it.
func TestWatchdog_Nested(t *testing.T) {
	t.Parallel()
	s, agents := start(t, renewedLeases, twoAgents...)
	bothWays(t, s, agents, mainKinds, func(p pair) {
		p.Parallel()
		owner := p.holder.lock().Text
		p.holder.lock()
		time.Sleep(renewedLeases.Lease * 3 / 2) // it outlives a lease
		p.waiter.sees(owner, 2)
		p.holder.unlock()
		time.Sleep(renewedLeases.Lease * 3 / 2) // likewise
		p.waiter.sees(owner, 1)
		p.holder.unlock()
	})
}

// A holder that was killed frees the lock within its lease.
func TestKilledHolder(t *testing.T) {
	victims(t, shortLeases, func(p pair) {
		p.holder.lock()
		wait := p.waiter.waits()
		p.waiting(1)
		p.holder.kill()
		killed := time.Now()
		got(p, wait)
		require.Less(p, time.Since(killed), shortLeases.Lease+3*time.Second)
		p.waiter.unlock()
	})
}

// A holder that was stopped for longer than its lease has lost the lock, and finds
// out when it goes on: it neither renews nor gives back what the other has now.
func TestPausedHolder(t *testing.T) {
	victims(t, shortLeases, func(p pair) {
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

// A killed waiter does not keep the lock from live ones, of either language.
func TestKilledWaiter(t *testing.T) {
	victims(t, options{Stale: time.Second, FirstLease: time.Second}, func(p pair) {
		holder, dead := p.waiter, p.holder
		holder.lock()
		dead.waits()
		p.waiting(1)
		next := holder.otherThread()
		wait := next.waits()
		if p.kind == "fair" {
			p.waiting(2)
			if dead.lang == inGo { // somebody has to look: Java alone waits until the dead one's score has passed
				other := startOn(p, p.s, options{Stale: time.Second, FirstLease: time.Second}, inGo)[0].hand(p, "third", p.kind, p.key)
				defer func(wait <-chan answer) {
					got(p, wait)
					other.unlock()
				}(other.waits())
				p.waiting(3)
			}
		}
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
func victims(t *testing.T, o options, run func(pair)) {
	s, agents := start(t, o, twoAgents...)
	for _, kind := range mainKinds {
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
