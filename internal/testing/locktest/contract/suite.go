// Package contract has a case for each promise of the public docs that needs no fault of its own.
package contract

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// testCase is a sentence of the public docs, or a guarantee, as a test.
type testCase struct {
	name string
	marks
	options locktest.Options // of both lockers
	run     func(c *harness)
}

// marks say which kinds run a case. Those that package faults has, too, have its names.
type marks uint

const (
	ownRedis    marks = 1 << iota // not those with a shared Redis: the case takes the way to Redis away
	disturbs                      // not those without servers: the case disturbs the way, changes what Redis has, or looks at calls
	ofOneHolder                   // not readers: the case keeps a key from a second holder, or hands it on to a waiter
	ofLocks                       // not a semaphore: the case needs fences, locks of Java, a first attempt alone, or waits that send nothing

	anywhere marks = 0
	servers        = ownRedis | disturbs
)

// leftOut reports whether a kind does not run the case.
func (m marks) leftOut(k locktest.Kind) bool {
	return m&ownRedis != 0 && k.Masters != nil || m&disturbs != 0 && k.Another != nil ||
		m&ofOneHolder != 0 && k.Shared || m&ofLocks != 0 && k.Permits
}

var defaults = locktest.Options{}

// Run runs the contract and the guarantees, unless a filter skips the test. Each case has a
// Redis of its own, unless they share Masters.
func Run(t *testing.T, on locktest.Place, filters ...func(*testing.T)) {
	for _, skip := range filters {
		skip(t)
	}
	t.Parallel()
	k := on(t)
	cases := slices.Concat(
		reentryCases, unlockCases, endCases, doCases, waitCases, cancelCases, termsCases, refusedCases,
		closeCases, handoverCases, operatorCases, listCases, secrecyCases, progressCases, guaranteeCases, fenceCases,
		trustCases, replyCases, observeCases,
	)
	if k.Fair {
		cases = slices.Concat(cases, fairCases)
	} else {
		cases = slices.Concat(cases, plainCases)
	}
	cases = slices.DeleteFunc(cases, func(c testCase) bool { return c.leftOut(k) })
	require.NotEmpty(t, cases)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k.Try(t, func(t *testing.T, k locktest.Kind) { c.run(newHarness(t, k, c.options)) })
		})
	}
}

// harness is two lockers on one Redis: locker, whose commands are noted and
// can be disturbed, and other.
type harness struct {
	*locktest.Harness
	ctx context.Context // of which the case expects no end

	mu         sync.Mutex
	sent       [][]string // guarded by mu: by node, scripts and commands sent by locker's client, but heartbeats
	heartbeats int        // guarded by mu: sent
	asking     bool       // guarded by mu: waitingHere asks
}

func newHarness(t *testing.T, k locktest.Kind, o locktest.Options) *harness {
	t.Helper()
	c := &harness{Harness: locktest.NewHarness(t, k, o), ctx: locktest.Bounded(t)}
	if c.Proxy == nil {
		return c
	}
	c.sent = make([][]string, len(c.Proxy.All))
	for i, p := range c.Proxy.All {
		p.OnRequest(func(cmd []string) redistest.Verdict {
			c.note(i, cmd)
			return redistest.Pass
		})
	}
	return c
}

// note takes in what is sent to a node.
func (c *harness) note(node int, cmd []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking && locktest.Verb(cmd) == "inspect" {
		return
	}
	switch v := locktest.Verb(cmd); v {
	case "hello", "client", "ping": // keep a connection
	case "info": // see whether Redis may evict locks, which the log would say
	case "check", "script", "discard", "punsubscribe": // see whether a node of a quorum votes
	case "cluster", "pubsub": // learn where slots are, and whether there are shard channels
	case "heartbeat":
		c.heartbeats++
	case "end_round":
		if len(c.sent) == 1 { // else it goes to nodes that are late to answer a failed round, which is chance
			c.sent[node] = append(c.sent[node], v)
		}
	default:
		own := len(cmd) == 2 && strings.Contains(cmd[1], ":self:") // a channel by which a subscriber learns that it is not deaf
		if !own && (v != "unsubscribe" || len(cmd) > 1) {          // without a channel it is part of that check
			c.sent[node] = append(c.sent[node], v)
		}
	}
}

// noted is what locker's client has sent, since the last call of commands, to a quorum of
// nodes, as no caller waits for the others. It is nil while there is no such quorum.
func (c *harness) noted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, _ := c.agreed()
	return slices.Clone(sent)
}

// agreed is what has been sent to a quorum of nodes, if there is one, under mu. The order
// does not count: a node may be late on one connection only.
func (c *harness) agreed() (sent []string, ok bool) {
	for _, one := range c.sent {
		same := 0
		for _, other := range c.sent {
			if slices.Equal(slices.Sorted(slices.Values(one)), slices.Sorted(slices.Values(other))) {
				same++
			}
		}
		if same > len(c.sent)/2 {
			return one, true
		}
	}
	return nil, false
}

// commands is noted, and forgets it.
func (c *harness) commands() (sent []string) {
	c.T.Helper()
	if c.Server == nil {
		return nil
	}
	locktest.Await(c.T, func() (ok bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if sent, ok = c.agreed(); ok {
			clear(c.sent)
		}
		return ok
	})
	return sent
}

// sentInOrder compares the noted calls; on several nodes in any order, as one may be late on
// one connection only.
func (c *harness) sentInOrder(want, sent []string) {
	c.T.Helper()
	if c.Kind.Nodes > 1 {
		require.ElementsMatch(c.T, want, sent)
	} else {
		require.Equal(c.T, want, sent)
	}
}

// sends requires that locker's client has sent this since the last call of commands.
func (c *harness) sends(want ...string) {
	c.T.Helper()
	if c.Server != nil {
		c.sentInOrder(want, c.commands())
	}
}

// quiet requires that locker's client has sent nothing since the last call of
// commands.
func (c *harness) quiet() {
	c.T.Helper()
	require.Empty(c.T, c.commands())
}

// queue calls Lock on a goroutine of its own, and returns when it waits for a
// key that is held or wanted by l already.
func (c *harness) queue(l locktest.Locker, key string, opts ...holdfast.LockOption) <-chan locktest.Acquired {
	return c.queueWith(c.ctx, l, key, opts...)
}

func (c *harness) queueWith(ctx context.Context, l locktest.Locker, key string, opts ...holdfast.LockOption) <-chan locktest.Acquired {
	before := c.waitingHere(l, key)
	telling := &locktest.TellingContext{Context: ctx, Waiting: make(chan struct{})}
	done := locktest.GoLock(l, telling, key, opts...)
	locktest.Within(c.T, telling.Waiting)
	locktest.Await(c.T, func() bool { return !c.Kind.Permits || c.waitingHere(l, key) > before })
	return done
}

// waitingHere is how many wait in a locker of a semaphore, where a caller asks Redis first.
func (c *harness) waitingHere(l locktest.Locker, key string) int {
	if !c.Kind.Permits {
		return 0
	}
	c.setAsking(true)
	defer c.setAsking(false)
	return locktest.Must(l.Inspect(c.ctx, key))(c.T).Waiting
}

func (c *harness) setAsking(asking bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = asking
}

// queues is that many calls of queue.
func (c *harness) queues(n int, key string, opts ...holdfast.LockOption) (waits []<-chan locktest.Acquired) {
	for range n {
		waits = append(waits, c.queue(c.Locker, key, opts...))
	}
	return waits
}

// serve unlocks a lease, and then that of each waiter but the last, which it returns. each, if not nil, sees what was
// unlocked and what came next.
func (c *harness) serve(holder *holdfast.Lease, waits []<-chan locktest.Acquired, each func(i int, before, next *holdfast.Lease)) *holdfast.Lease {
	c.T.Helper()
	for i, w := range waits {
		before := holder
		holder = locktest.Next(c.T, before, w)
		if each != nil {
			each(i, before, holder)
		}
	}
	return holder
}

// hold holds what c.Proxy's OnRequest or OnReply, which is on, sees of these scripts. held is closed when it has the
// first; letGo ends it.
func (c *harness) hold(on func(redistest.Hook), scripts ...string) (held <-chan struct{}, letGo func()) {
	hook, held := locktest.Holding(scripts...)
	on(hook)
	return held, func() {
		on(nil)
		c.Proxy.Release()
	}
}

// inQueue is queue, and on a fair lock returns when the call is in Redis' queue.
func (c *harness) inQueue(l locktest.Locker, key string, opts ...holdfast.LockOption) <-chan locktest.Acquired {
	c.T.Helper()
	if !c.Kind.Fair {
		return c.queue(l, key, opts...)
	}
	s := c.ServerOf(key)
	before := locktest.Queued(c.T, s, c.Name(key))
	done := c.queue(l, key, opts...)
	locktest.Await(c.T, func() bool {
		return slices.ContainsFunc(locktest.Queued(c.T, s, c.Name(key)), func(o string) bool { return !slices.Contains(before, o) })
	})
	return done
}

// calls are all calls that would take key, by name.
func (c *harness) calls(ctx context.Context, key string, opts ...holdfast.LockOption) map[string]func() error {
	return map[string]func() error{
		"Lock":       func() error { return locktest.ErrOf(c.Locker.Lock(ctx, key, opts...)) },
		"TryLock":    func() error { return locktest.ErrOf(c.Locker.TryLock(ctx, key, opts...)) },
		"TryLockFor": func() error { return locktest.ErrOf(c.Locker.TryLockFor(ctx, key, time.Hour, opts...)) },
		"Do":         func() error { return c.Locker.Do(ctx, key, unreachable(c.T), opts...) },
	}
}

// everyCall is calls and those of operators.
func (c *harness) everyCall(ctx context.Context, key string) map[string]func() error {
	all := c.calls(ctx, key)
	all["Inspect"] = func() error { return locktest.ErrOf(c.Locker.Inspect(ctx, key)) }
	all["ForceUnlock"] = func() error { return locktest.ErrOf(c.Locker.ForceUnlock(ctx, key)) }
	return all
}

// force is a ForceUnlock that must succeed.
func (c *harness) force(l locktest.Locker, key string) {
	c.T.Helper()
	require.NoError(c.T, locktest.ErrOf(l.ForceUnlock(c.ctx, key)))
}

// unlock is an Unlock that must succeed.
func (c *harness) unlock(l *holdfast.Lease) {
	c.T.Helper()
	require.NoError(c.T, l.Unlock(c.ctx))
}

// held requires that another has key.
func (c *harness) held(l locktest.Locker, key string) {
	c.T.Helper()
	lease, err := l.TryLock(c.ctx, key)
	require.ErrorIs(c.T, err, holdfast.ErrNotAcquired)
	require.Nil(c.T, lease)
}

// free requires that key has no holder.
func (c *harness) free(key string) {
	c.T.Helper()
	s := locktest.Must(c.Other.Inspect(c.ctx, key))(c.T)
	require.Equal(c.T, holdfast.Status{Key: key, Waiting: s.Waiting, Permits: s.Permits}, s)
}

// ended waits for the end of a lease, which all listeners must learn of, with the reason
// why.
func (c *harness) ended(l *holdfast.Lease, why error) {
	c.T.Helper()
	bound := l.Bind(c.ctx)
	locktest.Within(c.T, l.Done())
	locktest.Within(c.T, bound.Done())
	require.ErrorIs(c.T, l.Err(), why)
	require.ErrorIs(c.T, bound.Err(), context.Canceled)
	require.ErrorIs(c.T, context.Cause(bound), why)
}

// lives requires that a lease has not ended.
func (c *harness) lives(l *holdfast.Lease) {
	c.T.Helper()
	require.NoError(c.T, l.Err())
	select {
	case <-l.Done():
		require.Fail(c.T, "Done is closed")
	default:
	}
}

// away makes Redis refuse locker's connections.
func (c *harness) away() {
	if c.Server == nil {
		c.outage(time.Hour)
		return
	}
	c.Proxy.Refuse(true)
	c.Proxy.Cut()
}

// back ends away.
func (c *harness) back() {
	if c.Server == nil {
		c.outage(0)
		return
	}
	c.Proxy.Refuse(false)
}

func (c *harness) outage(d time.Duration) { c.Locker.(interface{ Outage(time.Duration) }).Outage(d) }

// awayAfter is away after Redis has run a script; its reply is lost.
func (c *harness) awayAfter(script string) {
	c.Proxy.OnReply(redistest.When(locktest.Is(script), func() redistest.Verdict {
		c.Proxy.Refuse(true)
		return redistest.Cut
	}))
}
