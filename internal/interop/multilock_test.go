package interop

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// quorumRig is a multilock on three nodes, with a Java agent on each.
type quorumRig struct {
	*testing.T
	locker *multilock.Locker
	nodes  []redis
	java   []hand
}

func newQuorumRig(t *testing.T) quorumRig {
	needJava(t)
	r := quorumRig{T: t}
	var clients []rueidis.Client
	var agents []*agent
	for range 3 {
		s := redistest.Start(t)
		r.nodes, clients = append(r.nodes, one(s)), append(clients, s.Client(t))
		agents = append(agents, startAgent(t, inJava, s.Addr(), longLeases))
	}
	for _, a := range agents {
		r.java = append(r.java, a.ready(t).hand(t, "java", "plain", "k"))
	}
	var err error
	r.locker, err = multilock.New(clients)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.locker.Close()) })
	require.NoError(t, r.locker.Bootstrap(t.Context(), multilock.NothingHeld()))
	return r
}

func TestMultilock(t *testing.T) {
	r := newQuorumRig(t)
	for name, run := range map[string]func(quorumRig){"NodesArePlainLocks": nodesArePlainLocks, "JavaHoldsNodes": javaHoldsNodes} {
		t.Run(name, func(t *testing.T) {
			own := r
			own.T, own.java = t, nil
			for _, h := range r.java {
				h.t = t
				own.java = append(own.java, h)
			}
			run(own)
		})
	}
}

// To Java each node of a quorum holds a plain lock.
func nodesArePlainLocks(t quorumRig) {
	r := t
	l, err := r.locker.Lock(t.Context(), "k")
	require.NoError(t, err)
	for i, java := range r.java {
		await(t, func() bool { return number(t, r.nodes[i], "EXISTS", "k") == 1 }) // the last may be late
		java.sees(l.Owner(), 1)
		require.False(t, java.try())
		java.refused()
	}
	inner, err := r.locker.Lock(l.Bind(t.Context()), "k")
	require.NoError(t, err)
	for _, java := range r.java {
		await(t, func() bool { return java.do(t, java.command("inspect")).Number == 2 })
	}
	require.NoError(t, inner.Unlock(t.Context()))
	var waits []<-chan answer
	for i, java := range r.java {
		waits = append(waits, java.waits())
		awaitWaiters(t, r.nodes[i], "plain", "k", 1)
	}
	require.NoError(t, l.Unlock(t.Context()))
	for i, java := range r.java { // each is told by its node
		got(t, waits[i])
		java.unlock()
		tidy(t, r.nodes[i], "k")
	}
}

// Java holds the lock on one node, where a quorum lacks it, or on two, where it is in the
// way. Java's release wakes the waiter.
func javaHoldsNodes(t quorumRig) {
	r := t
	one := r.java[0].lock().Text
	l, err := r.locker.TryLock(t.Context(), "k")
	require.NoError(t, err)
	r.java[0].sees(one, 1)
	r.java[1].sees(l.Owner(), 1)
	require.NoError(t, l.Unlock(t.Context()))
	r.java[0].sees(one, 1)

	await(t, func() bool { return r.java[1].try() })
	_, err = r.locker.TryLock(t.Context(), "k")
	require.ErrorIs(t, err, multilock.ErrNotAcquired)
	ctx, cancel := context.WithTimeout(t.Context(), agentWait)
	defer cancel()
	type acquired struct {
		lease *multilock.Lease
		err   error
	}
	done := make(chan acquired, 1)
	go func() {
		l, err := r.locker.Lock(ctx, "k")
		done <- acquired{l, err}
	}()
	await(t, func() bool { return listening(t, r.nodes[1], "k") == 1 })
	r.java[1].unlock()
	a := <-done
	require.NoError(t, a.err)
	r.java[0].sees(one, 1)
	require.NoError(t, a.lease.Unlock(t.Context()))
	r.java[0].unlock()
	for _, s := range r.nodes {
		await(t, func() bool { return number(t, s, "EXISTS", "k") == 0 })
	}
	require.Less(t, time.Until(a.lease.Deadline()), 30*time.Second)
}
