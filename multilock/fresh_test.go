package multilock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
)

// On fresh nodes, TryLock's error says what is missing and for how long. While Lock waits, the
// log has one line for each node. It waits out a quarantine that is much longer than the lease.
func TestFreshNodes(t *testing.T) {
	inWorld(t, 1, 3, func(w world) {
		const longest = time.Minute
		var log redistest.Log
		l := w.open(0, holdfast.WithLease(time.Second), multilock.WithMaxLease(longest), logTo(&log))
		_, err := l.TryLock(w.Context(), "k")
		require.ErrorIs(w, err, holdfast.ErrUnavailable)
		require.NotErrorIs(w, err, holdfast.ErrNotAcquired)
		var quorumErr *holdfast.QuorumError
		require.ErrorAs(w, err, &quorumErr)
		require.Equal(w, 2, quorumErr.Need)
		require.Len(w, quorumErr.Nodes, 3)
		for i, n := range quorumErr.Nodes {
			require.Equal(w, w.Links[0][i].Addr(), n.Node)
		}
		for _, n := range l.Nodes(w.Context()) {
			require.False(w, n.Vote)
			require.Positive(w, n.Remaining)
			require.NoError(w, n.Err)
		}

		began := time.Now()
		w.lock(l, "k")
		require.InDelta(w, longest, time.Since(began), float64(longest/20))
		require.Equal(w, 3, log.Count("has no vote yet"), log.String())
		for _, n := range l.Nodes(w.Context()) {
			require.True(w, n.Vote)
		}
	})
}

// Nodes without persistence look new after they were restarted one after another. A program
// that then starts gets nothing that another holds, and the log says for how long.
func TestG1_RollingRestart(t *testing.T) {
	for _, n := range []int{3, 5} {
		for name, forget := range map[string]func(*sim.Server){
			"restarted": (*sim.Server).Restart, "with memory": (*sim.Server).RestartWithMemory, "flushed": (*sim.Server).Forget,
		} {
			t.Run(fmt.Sprint(n, " ", name), func(t *testing.T) {
				inWorld(t, 2, n, func(w world) {
					x := w.open(0)
					w.vote(x)
					lease := w.lock(x, "k")
					for _, s := range w.Servers {
						forget(s)
					}
					var log redistest.Log
					y := w.open(1, logTo(&log))
					_, err := y.TryLock(w.Context(), "k")
					require.Equal(w, n, log.Count("has no vote yet"), log.String())
					require.Contains(w, log.String(), " for=")
					locktest.RequireSentinel(w, err, holdfast.ErrUnavailable, "no vote for another")
					w.lock(y, "k")
					require.ErrorIs(w, lease.Err(), holdfast.ErrLost)
				})
			})
		}
	}
}

// DeclareNothingHeld ends a quarantine that a failed attempt has begun, as the error
// of the attempt says.
func TestNothingHeldAfterAFailedTryLock(t *testing.T) {
	inWorld(t, 2, 3, func(w world) {
		l := w.open(0)
		require.ErrorContains(w, locktest.ErrOf(l.TryLock(w.Context(), "k")), "DeclareNothingHeld")
		require.ErrorIs(w, locktest.ErrOf(l.TryLock(w.Context(), "k")), holdfast.ErrUnavailable, "nothing was stated")
		w.vote(w.open(1))
		w.vote(l)
		require.NoError(w, locktest.ErrOf(l.TryLock(w.Context(), "k")))
	})
}

// Its error tells an ended context and a closed locker from nodes that do not answer.
func TestNothingHeldWithoutACall(t *testing.T) {
	inWorld(t, 1, 3, func(w world) {
		l := w.open(0)
		over := locktest.Over(w.Context())
		require.ErrorIs(w, l.DeclareNothingHeld(over), context.Canceled)
		require.NoError(w, l.Close())
		require.ErrorIs(w, l.DeclareNothingHeld(w.Context()), holdfast.ErrClosed)
		require.ErrorIs(w, l.Nodes(w.Context())[0].Err, holdfast.ErrClosed)
	})
}

// DeclareNothingHeld refuses nodes that may evict locks. One of three is left out, and a line of the log
// says so. Of two, only WithoutEvictionGuard makes a quorum.
func TestNodesThatMayEvict(t *testing.T) {
	inWorld(t, 2, 3, func(w world) {
		const text = `maxmemory-policy is "allkeys-lru", not noeviction`
		evicts := func(node int) { w.Servers[node].Do(w, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru") }
		var log redistest.Log
		l := w.open(0, logTo(&log))
		unsafe := w.open(1, multilock.WithoutEvictionGuard())
		evicts(2)
		require.ErrorContains(w, l.DeclareNothingHeld(w.Context()), text)
		w.vote(unsafe)
		for range 5 {
			lease := w.lock(l, "k")
			settle()
			require.Empty(w, w.owners("k")[2])
			require.NoError(w, lease.Unlock(w.Context()))
			time.Sleep(2 * holdfast.DefaultLease) // then the nodes are checked again
		}
		require.Equal(w, 1, log.Count("cannot vote"), log.String())
		require.ErrorContains(w, l.Nodes(w.Context())[2].Err, text)

		evicts(1)
		_, err := l.Lock(w.Context(), "k") // waiting cannot cure it
		require.ErrorContains(w, err, text)
		require.NotErrorIs(w, err, holdfast.ErrUnavailable)
		require.NoError(w, unsafe.Do(w.Context(), "k", func(context.Context) error { return nil }))
	})
}

// New cannot notice this without a call. The log tells of it, and a lock that lacks the vote.
func TestSameServerTwice(t *testing.T) {
	inWorld(t, 2, 2, func(w world) {
		var log redistest.Log
		l := w.on(append(w.Clients(0), w.Clients(1)[0]), logTo(&log))
		w.vote(l)
		text := fmt.Sprintf("clients 0 (%s) and 2 (%s) reach the same server", w.Links[0][0].Addr(), w.Links[1][0].Addr())
		for range 5 {
			require.NoError(w, l.Do(w.Context(), "k", func(context.Context) error { return nil }))
			time.Sleep(2 * holdfast.DefaultLease) // then the nodes are checked again
		}
		require.LessOrEqual(w, log.Count("cannot vote"), 2, "one of each client\n"+log.String())
		require.Contains(w, log.String(), text)
		require.EqualError(w, l.Nodes(w.Context())[2].Err, text)
		w.Servers[1].Kill()
		require.ErrorContains(w, locktest.ErrOf(l.TryLock(w.Context(), "k")), text)

		w.Servers[1].Restart()
		l = w.on([]rueidis.Client{w.Clients(0)[0], w.Clients(1)[0], w.Clients(1)[0]})
		_, err := l.Lock(w.Context(), "k") // waiting cannot cure it
		require.ErrorContains(w, err, "reach the same server")
		require.NotErrorIs(w, err, holdfast.ErrUnavailable)
	})
}

// A key of a wrong type on a quorum of nodes is a refusal and no outage, so a lock fails at once.
// On one node, it costs only that node's vote.
func TestRefusalsOfAQuorum(t *testing.T) {
	inWorld(t, 1, 3, func(w world) {
		l := w.open(0)
		w.vote(l)
		w.Servers[0].Do(w, "SET", "k", "x")
		require.NoError(w, l.Do(w.Context(), "k", func(context.Context) error { return nil }))
		settle()
		w.Servers[1].Do(w, "SET", "k", "x")
		require.ErrorIs(w, locktest.ErrOf(l.Lock(w.Context(), "k")), holdfast.ErrWrongType)
	})
}

// While two of five nodes stand still, a lock costs a timeout until that is known, and none from
// then on.
func TestHungMinorityCostsNothing(t *testing.T) {
	inWorld(t, 1, 5, func(w world) {
		l := w.open(0)
		w.vote(l)
		w.Servers[0].Pause()
		w.Servers[1].Pause()
		for i := range 20 {
			began := time.Now()
			require.NoError(w, l.Do(w.Context(), "k", func(context.Context) error { return nil }))
			if took := time.Since(began); i > 0 {
				require.Less(w, took, 10*time.Millisecond, i)
			} else {
				require.Less(w, took, 3*multilock.DefaultNodeTimeout)
			}
		}
	})
}

func TestNewRefuses(t *testing.T) {
	client := redistest.Start(t).Client(t)
	for want, clients := range map[string][]rueidis.Client{
		"0 nodes":         {},
		"16 nodes":        make([]rueidis.Client, 16),
		"client 1 is nil": {client, nil},
	} {
		require.ErrorContains(t, locktest.ErrOf(multilock.New(clients)), want)
	}
	one := []rueidis.Client{client}
	for n, most := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 15: 7} {
		clients := slices.Repeat(one, n)
		require.NoError(t, locktest.Must(multilock.New(clients, multilock.WithClockFaults(most)))(t).Close())
		_, err := multilock.New(clients, multilock.WithClockFaults(most+1))
		require.ErrorContains(t, err, fmt.Sprintf("WithClockFaults: %d of %d nodes, 0 to %d", most+1, n, most))
	}
	l := locktest.Opened(multilock.New(one))(t)
	locktest.RequireSentinel(t, locktest.ErrOf(l.Lock(t.Context(), "k", holdfast.FixedLease(time.Hour))), holdfast.ErrInvalidArgument, "longer than WithMaxLease")
}
