package interop

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

// rw is a read/write lock and two agents in the two languages.
type rw struct {
	*testing.T
	s          redis
	key        string
	one, other *agent
}

func (p rw) reader(a *agent, thread string) hand { return a.hand(p, thread+" "+p.key, "read", p.key) }

func (p rw) writer(a *agent) hand { return a.hand(p, "writer "+p.key, "write", p.key) }

// waiting returns when so many clients wait.
func (p rw) waiting(n int64) {
	p.Helper()
	locktest.Await(p, func() bool { return listeners(p, p.s, scripts.RWLockChannel(p.key)) == n })
}

// eachWay runs a case with either language as one.
func eachWay(t *testing.T, o options, run func(rw)) {
	t.Parallel()
	onServerAndCluster(t, func(t *testing.T, s redis) {
		agents := startOn(t, s, o, twoAgents...)
		for i, one := range agents {
			t.Run("one is "+one.lang, func(t *testing.T) {
				t.Parallel()
				p := rw{t, s, t.Name(), one, agents[1-i]}
				run(p)
				require.Zero(t, number(t, s, "EXISTS", p.key))
				p.waiting(0)
			})
		}
	})
}

// attempts counts the calls of scripts for the key, from now on.
func (p rw) attempts() *atomic.Int64 {
	var n atomic.Int64
	p.s.of(p, p.key).Monitor(p, func(c redistest.Command) {
		if !c.Scripted && strings.HasPrefix(c.Words[0], "EVAL") && slices.Contains(c.Words, p.key) {
			n.Add(1)
		}
	})
	return &n
}

// woken waits for the lock, after a message that wakes it. Redisson loses the message 1 if it comes
// before the thread that has subscribed sleeps: then it is said once more, and woken returns 1.
func (p rw) woken(from <-chan answer) (late int) {
	p.Helper()
	select {
	case a := <-from:
		require.True(p, a.OK, a.Error)
		return 0
	case <-time.After(20 * time.Second):
	}
	p.s.of(p, p.key).Do(p, "PUBLISH", scripts.RWLockChannel(p.key), "1")
	if p.s.clustered() {
		p.s.of(p, p.key).Do(p, "SPUBLISH", scripts.RWLockChannel(p.key), "1")
	}
	got(p, from)
	return 1
}

// Readers of both languages share. A writer of either waits for all of them, and readers for it;
// waits end by messages.
func TestReadWriteShared(t *testing.T) {
	eachWay(t, longLeases, func(p rw) {
		here, there, second := p.reader(p.one, "r"), p.reader(p.other, "r"), p.reader(p.one, "s")
		w := p.writer(p.one)
		attempts := p.attempts()
		late := 0
		for range 6 {
			here.lock()
			there.lock()
			second.lock()
			require.False(p, p.writer(p.other).try())
			wait := w.waits()
			p.waiting(1)
			second.unlock()
			here.unlock()
			require.Empty(p, wait)
			there.unlock()
			got(p, wait)

			require.False(p, there.try())
			require.False(p, p.writer(p.other).try())
			before := attempts.Load()
			reads, again := there.waits(), here.waits()
			p.waiting(2)
			locktest.Await(p, func() bool { return attempts.Load() >= before+4 }) // each once more when it had subscribed
			w.unlock()
			late += p.woken(reads) + p.woken(again)
			there.unlock()
			here.unlock()
		}
		require.Less(p, late, 6, "not woken by messages")
	})
}

// Both watchdogs keep their readers' entries, and neither unlock ends the other's.
func TestReadWriteWatchdog(t *testing.T) {
	eachWay(t, renewedLeases, func(p rw) {
		here, there := p.reader(p.one, "r"), p.reader(p.other, "r")
		here.lock()
		here.lock() // nested
		there.lock()
		time.Sleep(renewedLeases.Lease * 3 / 2)
		require.False(p, p.writer(p.other).try())
		there.unlock()
		time.Sleep(renewedLeases.Lease * 3 / 2)
		require.False(p, p.writer(p.other).try())
		here.unlock()
		require.False(p, p.writer(p.one).try())
		here.unlock()
		w := p.writer(p.other)
		require.True(p, w.try())
		time.Sleep(renewedLeases.Lease * 3 / 2)
		require.False(p, here.try())
		w.unlock()
	})
}

// What a killed process has read or written is free within its lease, although readers of the other
// language renew theirs meanwhile.
func TestReadWriteKilled(t *testing.T) {
	needJava(t)
	for _, lang := range twoAgents {
		for _, kind := range []string{"read", "write"} {
			t.Run(lang+"/"+kind, func(t *testing.T) {
				t.Parallel()
				s, agents := start(t, shortLeases, lang, inGo, inJava)
				dead := agents[0].hand(t, "dead", kind, "k")
				dead.lock()
				for _, a := range agents[1:] {
					p := rw{t, s, "k", a, a}
					if kind == "read" {
						p.reader(a, "r").lock()
					}
				}
				agents[0].kill()
				if kind == "read" {
					time.Sleep(shortLeases.Lease * 3 / 2)
					for _, a := range agents[1:] {
						a.hand(t, "r k", "read", "k").unlock()
					}
				}
				for _, a := range agents[1:] {
					w := a.hand(t, "w", "write", "k")
					w.lock()
					w.unlock()
				}
			})
		}
	}
}

// The locks of the other kinds leave a read/write lock of Java's alone.
func TestReadWriteIsNoOtherLock(t *testing.T) {
	s, agents := start(t, longLeases, twoAgents...)
	for _, kind := range []string{"read", "write"} {
		java := agents[1].hand(t, "t", kind, kind)
		java.lock()
		for _, other := range mainKinds {
			require.Contains(t, agents[0].do(t, agents[0].hand(t, "t", other, kind).command("tryLock")).Error, "WRONGTYPE")
		}
		java.unlock()
		require.Zero(t, number(t, s, "EXISTS", kind))
	}
}
