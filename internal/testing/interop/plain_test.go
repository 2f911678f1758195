package interop

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// pair is two agents in the two languages: one holds, and the other waits.
type pair struct {
	*testing.T
	s              redis
	kind           string
	key            string
	holder, waiter hand
}

// waiting waits until n of the waiter's language wait.
func (p pair) waiting(n int64) { p.Helper(); awaitWaiters(p.T, p.s, p.kind, p.key, n) }

// asleep has the only waiter of a lock wait, and returns when nothing but a message or the
// time wakes it: a plain one was refused twice, and a fair one of Go behind Java looks once
// more when it listens for Java's release.
func (p pair) asleep(h hand) <-chan answer {
	p.Helper()
	s := p.s.of(p, p.key)
	before := calls(p, s)
	wait := h.waits()
	p.waiting(1)
	locktest.Await(p, func() bool {
		switch now := calls(p, s); {
		case p.kind != "fair":
			return now["eval"]+now["evalsha"] >= before["eval"]+before["evalsha"]+2
		case h.lang == inGo: // a heartbeat
			return now["zcard"] > before["zcard"]
		}
		return true
	})
	return wait
}

// bothWays runs a case on locks of each kind, with either language as holder.
func bothWays(t *testing.T, s redis, agents []*agent, kinds []string, run func(pair)) {
	for _, kind := range kinds {
		for i, holder := range agents {
			waiter := agents[1-i]
			t.Run(kind+"/"+holder.lang+"Holds", func(t *testing.T) {
				key := t.Name()
				run(pair{
					T: t, s: s, kind: kind, key: key,
					holder: holder.hand(t, "h "+key, kind, key), waiter: waiter.hand(t, "w "+key, kind, key),
				})
				tidy(t, s, key)
			})
		}
	}
}

var (
	allKinds   = []string{"plain", "fenced", "fair"}
	mainKinds  = []string{"plain", "fair"}
	twoAgents  = []string{inGo, inJava}
	longLeases = options{Lease: 2 * agentWait} // nobody gets a lock by waiting for its end
)

// Waits end by the other's message.
func testShared(t *testing.T, s redis, agents []*agent) {
	for name, c := range map[string]struct {
		kinds []string
		run   func(pair)
	}{
		"TryLock":      {allKinds, sharedTryLock},
		"TryLockFor":   {allKinds, sharedTryLockFor},
		"Reentry":      {allKinds, sharedReentry},
		"Expiry":       {mainKinds, sharedExpiry},
		"ForceUnlock":  {allKinds, sharedForce},
		"BackAndForth": {allKinds, sharedBackAndForth},
		"BothWait":     {mainKinds, sharedBothWait},
	} {
		t.Run(name, func(t *testing.T) { bothWays(t, s, agents, c.kinds, c.run) })
	}
}

// calls is how often the server has run each command.
func calls(t testing.TB, s *redistest.Server) map[string]int {
	run, _ := redistest.Calls(locktest.Text(t, s, "INFO", "commandstats"))
	return run
}

// Another thread of the holder's process is another owner, too.
func sharedTryLock(p pair) {
	owner := p.holder.lock().Text
	for _, other := range []hand{p.waiter, p.holder.otherThread()} {
		require.False(p, other.try())
		other.refused()
		other.sees(owner, 1)
	}
	p.holder.unlock()
	p.holder.sees("", 0)
	require.True(p, p.waiter.try())
	require.False(p, p.holder.try())
	p.waiter.unlock()
}

func sharedTryLockFor(p pair) {
	p.holder.lock()
	before := time.Now()
	notGot(p, p.waiter.triesFor(300*time.Millisecond))
	require.GreaterOrEqual(p, time.Since(before), 300*time.Millisecond)
	if p.kind == "fair" {
		p.waiting(0) // a waiter that gives up need not wait for it
	}
	wait := p.waiter.triesFor(agentWait)
	p.waiting(1)
	p.holder.unlock()
	got(p, wait)
	p.waiter.unlock()
}

func sharedReentry(p pair) {
	var owner string
	for n := 1; n <= 3; n++ {
		owner = p.holder.lock().Text
		p.holder.counts(n)
		p.waiter.sees(owner, n)
	}
	p.waiter.counts(0)
	for n := 2; n >= 1; n-- {
		p.holder.unlock()
		p.holder.counts(n)
		p.waiter.sees(owner, n)
		require.False(p, p.waiter.try())
	}
	wait := p.waiter.waits()
	p.waiting(1)
	p.holder.unlock()
	got(p, wait)
	p.waiter.unlock()
}

// No message says that the lock is free: the waiter knows from its attempt.
func sharedExpiry(p pair) {
	const lease = 700 * time.Millisecond
	before := time.Now()
	p.holder.lockFor(lease)
	next := got(p, p.waiter.waits())
	require.GreaterOrEqual(p, time.Since(before), lease)
	p.holder.refused()
	p.holder.sees(next.Text, 1)
	p.waiter.unlock()
}

// Neither an outermost entry nor a nested one is given back once the other has the lock.
func sharedForce(p pair) {
	require.False(p, p.waiter.forceUnlock())
	for entries := 1; entries <= 2; entries++ {
		for range entries {
			p.holder.lock()
		}
		wait := p.waiter.waits()
		p.waiting(1)
		require.True(p, p.waiter.otherThread().forceUnlock())
		owner := got(p, wait).Text
		for range entries {
			p.holder.refused()
		}
		p.holder.sees(owner, 1)
		p.waiter.counts(1)
		p.waiter.unlock()
	}
}

// Each release hands the lock to the other side by its message: without it, Go's fair lock
// would find the lock by a heartbeat, once a second. On a busy machine, some are late.
func sharedBackAndForth(p pair) {
	p.holder.lock()
	here, there := p.holder, p.waiter
	prompt := map[string]int{} // by the language that waits
	for began := time.Now(); min(prompt[inGo], prompt[inJava]) < 8; {
		require.Less(p, time.Since(began), agentWait, "not woken by messages")
		wait := p.asleep(there)
		here.unlock()
		released := time.Now()
		owner := got(p, wait).Text
		if time.Since(released) < 500*time.Millisecond {
			prompt[there.lang]++
		}
		here.sees(owner, 1)
		here, there = there, here
		if p.kind != "fair" {
			locktest.Await(p, func() bool { return listening(p, p.s, p.key) == 0 })
		}
	}
	here.unlock()
}

// Both sides wait for the one that holds, and one of them is its like.
func sharedBothWait(p pair) {
	p.holder.lock()
	first := p.waiter.waits()
	p.waiting(1)
	again := p.holder.otherThread()
	second := again.waits()
	if p.kind == "fair" {
		p.waiting(2)
		p.holder.unlock()
		got(p, first)
		p.waiter.unlock()
		got(p, second)
		again.unlock()
		return
	}
	p.holder.unlock()
	select { // no order is promised
	case a := <-first:
		require.True(p, a.OK)
		p.waiter.unlock()
		got(p, second)
		again.unlock()
	case a := <-second:
		require.True(p, a.OK)
		again.unlock()
		got(p, first)
		p.waiter.unlock()
	}
}
