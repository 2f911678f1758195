package interop

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// To Java each node of a quorum holds a plain lock, and its own locks on the nodes count for
// Go.
func TestMultilock(t *testing.T) {
	needJava(t)
	var nodes []redis
	var clients []rueidis.Client
	var java []hand
	for range 3 {
		s := redistest.Start(t)
		nodes, clients = append(nodes, one(s)), append(clients, s.Client(t))
		java = append(java, startAgent(t, inJava, s.Addr(), longLeases).hand(t, "java", "plain", "k"))
	}
	for _, h := range java {
		h.ready(t)
	}
	locker := locktest.Must(multilock.New(clients, multilock.WithNodeTimeout(3*time.Second)))(t)
	t.Cleanup(func() { require.NoError(t, locker.Close()) })
	require.NoError(t, locker.DeclareNothingHeld(t.Context()))

	// Go holds, and is entered again.
	l := locktest.Must(locker.Lock(t.Context(), "k"))(t)
	inner := locktest.Must(locker.Lock(l.Bind(t.Context()), "k"))(t)
	var waits []<-chan answer
	for i, h := range java {
		locktest.Await(t, func() bool { return h.do(t, h.command("inspect")).Number == 2 }) // the last may be late
		h.sees(l.Owner(), 2)
		require.False(t, h.try())
		h.refused()
		waits = append(waits, h.waits())
		awaitWaiters(t, nodes[i], "plain", "k", 1)
	}
	require.NoError(t, inner.Unlock(t.Context()))
	require.NoError(t, l.Unlock(t.Context()))
	for _, wait := range waits { // each is told by its node
		got(t, wait)
	}

	// Java holds all nodes, and then too many for a quorum; its release wakes the waiter.
	require.ErrorIs(t, locktest.ErrOf(locker.TryLock(t.Context(), "k")), holdfast.ErrNotAcquired)
	java[2].unlock()
	waited := locktest.GoAcquire(func() (*holdfast.Lease, error) { return locker.TryLockFor(t.Context(), "k", agentWait) })
	locktest.Await(t, func() bool { return listening(t, nodes[1], "k") == 1 })
	java[1].unlock()
	l = locktest.Got(t, waited)

	// A quorum is enough: Java still holds a node.
	java[1].sees(l.Owner(), 1)
	require.NoError(t, l.Unlock(t.Context()))
	require.EqualValues(t, 1, number(t, nodes[0], "EXISTS", "k"))
	java[0].unlock()
	for _, s := range nodes {
		locktest.Await(t, func() bool { return number(t, s, "EXISTS", "k") == 0 })
		tidy(t, s, "k")
	}
}
