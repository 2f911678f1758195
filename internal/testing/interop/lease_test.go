package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
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

// Tokens grow from hold to hold, whichever language holds, over re-entries and a
// counter that Java has begun at 1.
func TestFence(t *testing.T) {
	s, agents := start(t, longLeases, twoAgents...)
	for name, order := range map[string][]string{
		"JavaFirst": {inJava, inJava, inGo, inJava, inGo, inGo, inJava},
		"GoFirst":   {inGo, inJava, inJava, inGo, inJava},
	} {
		for _, kind := range []string{"fenced", "fair fenced"} { // Java's fenced lock is not fair: they take turns here
			t.Run(name+"/"+kind, func(t *testing.T) {
				key := t.Name()
				last := int64(0)
				for i, lang := range order {
					h := agents[0].hand(t, key, kind, key)
					if lang == inJava {
						h = agents[1].hand(t, key, "fenced", key)
					}
					token := h.lock().Number
					require.Greater(t, token, last, "%d: %s", i, lang)
					last = token
					again := h.lock().Number // Java's grows here, too; Go's belongs to the hold
					require.GreaterOrEqual(t, again, last)
					last = again
					counter := locktest.OfKey("redisson_lock_token", key)
					require.EqualValues(t, -1, number(t, s, "PTTL", counter), "a counter that Java needs has no end")
					require.Equal(t, last, locktest.Must(s.of(t, counter).Do(t, "GET", counter).AsInt64())(t))
					h.unlock()
					h.unlock()
				}
				require.Greater(t, last, int64(1e15), "Go's numbers follow the clock in µs")
				tidy(t, s, key)
			})
		}
	}
}
