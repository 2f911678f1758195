package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortLeases are renewed and end within the time of a test.
var shortLeases = options{Lease: 6 * time.Second, WaiterTTL: 3 * time.Second, GrantLease: 3 * time.Second}

// renewedLeases leave the watchdogs time enough where the machine is busy.
var renewedLeases = options{Lease: 8 * time.Second}

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
