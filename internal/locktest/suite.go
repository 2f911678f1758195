package locktest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// contractCase is a sentence of the public docs, or a guarantee, as a test.
type contractCase struct {
	name    string
	options Options // of both lockers
	run     func(c *contractRig)
}

var defaults = Options{}

// Run runs the contract and the guarantees against d. Each case has a Redis of
// its own.
func Run(t *testing.T, d Kind) {
	cases := slices.Concat(
		reentryCases, unlockCases, endCases, doCases, waitCases, cancelCases, termsCases, refusedCases,
		closeCases, bindCases, handoverCases, operatorCases, secrecyCases, progressCases, trustCases, replyCases, guaranteeCases, fenceCases,
	)
	if d.Fair {
		cases = slices.Concat(cases, fairCases)
	} else {
		cases = slices.Concat(cases, plainCases)
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newContractRig(t, d, c.options))
		})
	}
}

// contractRig is two lockers on one Redis: locker, whose commands are noted and
// can be disturbed, and other.
type contractRig struct {
	*faultRig
	ctx context.Context // of which the case expects no end

	mu         sync.Mutex
	sent       [][]string // guarded by mu: by node, scripts and commands sent by locker's client, but heartbeats
	heartbeats int        // guarded by mu: sent
}

func newContractRig(t *testing.T, d Kind, o Options) *contractRig {
	t.Helper()
	c := &contractRig{faultRig: newFaultRig(t, d, o), ctx: bounded(t)}
	c.sent = make([][]string, len(c.proxy.all))
	for i, p := range c.proxy.all {
		p.OnRequest(func(cmd []string) redistest.Verdict {
			c.note(i, cmd)
			return redistest.Pass
		})
	}
	return c
}

// note takes in what is sent to a node.
func (c *contractRig) note(node int, cmd []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch v := verb(cmd); v {
	case "hello", "client", "ping": // keep a connection
	case "check", "script", "discard", "punsubscribe", "sunsubscribe": // see whether a node of a quorum votes
	case "heartbeat":
		c.heartbeats++
	case "undo":
		if len(c.sent) == 1 { // else it goes to those that are late to answer a round that has failed: who, is chance
			c.sent[node] = append(c.sent[node], v)
		}
	default:
		if v != "unsubscribe" || len(cmd) > 1 { // without a channel it is part of that look, too
			c.sent[node] = append(c.sent[node], v)
		}
	}
}

// noted is what locker's client has sent since the last call of commands: to a
// quorum of nodes, as nobody waits until the others are sent anything. It is nil as
// long as there are no such.
func (c *contractRig) noted() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent, _ := c.agreed()
	return slices.Clone(sent)
}

// agreed is what has been sent to a quorum of nodes, if there is one, under mu. In
// which order does not count: a node may be late on one connection only.
func (c *contractRig) agreed() (sent []string, ok bool) {
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
func (c *contractRig) commands() (sent []string) {
	c.t.Helper()
	await(c.t, func() (ok bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if sent, ok = c.agreed(); ok {
			clear(c.sent)
		}
		return ok
	})
	return sent
}

// sentInOrder compares what was noted; on several nodes, of which one may be late on
// one connection only, in any order.
func (c *contractRig) sentInOrder(want, sent []string) {
	c.t.Helper()
	if c.kind.Nodes > 1 {
		require.ElementsMatch(c.t, want, sent)
	} else {
		require.Equal(c.t, want, sent)
	}
}

// quiet requires that locker's client has sent nothing since the last call of
// commands.
func (c *contractRig) quiet() {
	c.t.Helper()
	require.Empty(c.t, c.commands())
}

// queue calls Lock on a goroutine of its own, and returns when it waits for a
// key that is held or wanted by l already.
func (c *contractRig) queue(l holdfast.Locker, key string, calls ...holdfast.LockOption) <-chan acquired {
	return c.queueWith(c.ctx, l, key, calls...)
}

func (c *contractRig) queueWith(ctx context.Context, l holdfast.Locker, key string, calls ...holdfast.LockOption) <-chan acquired {
	telling := &tellingContext{Context: ctx, waiting: make(chan struct{})}
	done := make(chan acquired, 1)
	go func() {
		lease, err := l.Lock(telling, key, calls...)
		done <- acquired{lease, err}
	}()
	select {
	case <-telling.waiting:
	case <-c.ctx.Done():
		require.FailNow(c.t, "Lock does not wait")
	}
	return done
}

// inQueue is queue, and on a fair lock returns when the call is in Redis' queue.
func (c *contractRig) inQueue(l holdfast.Locker, key string, calls ...holdfast.LockOption) <-chan acquired {
	c.t.Helper()
	if !c.kind.Fair {
		return c.queue(l, key, calls...)
	}
	before := queued(c.t, c.server, key)
	done := c.queue(l, key, calls...)
	await(c.t, func() bool {
		return slices.ContainsFunc(queued(c.t, c.server, key), func(o string) bool { return !slices.Contains(before, o) })
	})
	return done
}

// unlock is an Unlock that must succeed.
func (c *contractRig) unlock(l *holdfast.Lease) {
	c.t.Helper()
	require.NoError(c.t, l.Unlock(c.ctx))
}

// held requires that another has key.
func (c *contractRig) held(l holdfast.Locker, key string) {
	c.t.Helper()
	lease, err := l.TryLock(c.ctx, key)
	require.ErrorIs(c.t, err, holdfast.ErrNotAcquired)
	require.Nil(c.t, lease)
}

// free requires that nobody has key.
func (c *contractRig) free(key string) {
	c.t.Helper()
	s, err := c.other.Inspect(c.ctx, key)
	require.NoError(c.t, err)
	require.Equal(c.t, holdfast.Status{Waiting: s.Waiting}, s)
}

// ended waits for the end of a lease, which must be told everywhere as why.
func (c *contractRig) ended(l *holdfast.Lease, why error) {
	c.t.Helper()
	bound := l.Bind(c.ctx)
	for _, done := range []<-chan struct{}{l.Done(), bound.Done()} {
		select {
		case <-done:
		case <-c.ctx.Done():
			require.FailNow(c.t, "the lease does not end")
		}
	}
	require.ErrorIs(c.t, l.Err(), why)
	require.ErrorIs(c.t, bound.Err(), context.Canceled)
	require.ErrorIs(c.t, context.Cause(bound), why)
}

// lives requires that a lease has not ended.
func (c *contractRig) lives(l *holdfast.Lease) {
	c.t.Helper()
	require.NoError(c.t, l.Err())
	select {
	case <-l.Done():
		require.Fail(c.t, "Done is closed")
	default:
	}
}

// away makes Redis refuse locker's connections.
func (c *contractRig) away() {
	c.proxy.Refuse(true)
	c.proxy.Cut()
}

// awayAfter does so when a script has been carried out, whose reply is lost.
func (c *contractRig) awayAfter(script string) {
	c.proxy.OnReply(func(cmd []string) redistest.Verdict {
		if !is(script)(cmd) {
			return redistest.Pass
		}
		c.proxy.Refuse(true)
		return redistest.Cut
	})
}
