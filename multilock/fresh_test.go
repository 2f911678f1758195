package multilock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// On fresh nodes, TryLock's error says what is missing and for how long. While Lock waits, the
// log has one line for each node.
func TestFreshNodes(t *testing.T) {
	needGuard(t)
	t.Parallel()
	nodes := startNodes(t, 3)
	var log redistest.Log
	l := open(t, nodes, multilock.WithLease(12*time.Second), multilock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	_, err := l.TryLock(t.Context(), "k")
	require.ErrorIs(t, err, multilock.ErrUnavailable)
	require.NotErrorIs(t, err, multilock.ErrNotAcquired)
	require.ErrorContains(t, err, "no vote for another")
	var said *multilock.QuorumError
	require.True(t, errors.As(err, &said))
	require.Equal(t, 2, said.Need)
	require.Len(t, said.Nodes, 3)
	without := 0
	for i, n := range said.Nodes {
		require.Equal(t, nodes[i].Addr(), n.Node)
		if strings.Contains(n.Err.Error(), "no vote for another") {
			without++
		}
	}
	require.GreaterOrEqual(t, without, 2, "the third may not have answered yet")
	for _, n := range l.Nodes(t.Context()) {
		require.False(t, n.Vote)
		require.Positive(t, n.Left)
		require.NoError(t, n.Err)
	}

	began := time.Now()
	lease, err := l.Lock(t.Context(), "k")
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond)
	require.NoError(t, lease.Unlock(t.Context()))
	require.Equal(t, 3, log.Count("has no vote yet"), log.String())
	for _, n := range l.Nodes(t.Context()) {
		require.True(t, n.Vote)
	}
	require.NoError(t, l.Bootstrap(t.Context()), "does no harm")
}

// Nodes without persistence look new after they were restarted one after another. A program
// that then calls Bootstrap gets nothing that another holds, and the log says for how long.
func TestG1_BootstrapAfterARollingRestart(t *testing.T) {
	needGuard(t)
	t.Parallel()
	for _, n := range []int{3, 5} {
		for name, forget := range map[string]func(*redistest.Server){
			"restarted": func(s *redistest.Server) { s.Restart() },
			"flushed":   func(s *redistest.Server) { s.Do(t, "FLUSHALL") },
		} {
			t.Run(fmt.Sprint(n, " ", name), func(t *testing.T) {
				nodes := startNodes(t, n)
				x := open(t, nodes)
				nothingHeld(t, x)
				lease, err := x.Lock(t.Context(), "k")
				require.NoError(t, err)
				defer lease.Unlock(context.Background())
				for _, s := range nodes {
					forget(s)
				}
				var log redistest.Log
				y := open(t, nodes, multilock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				require.NoError(t, y.Bootstrap(t.Context()))
				require.Equal(t, n, log.Count("has no vote yet"), log.String())
				require.Contains(t, log.String(), " for=")
				_, err = y.TryLock(t.Context(), "k")
				require.ErrorIs(t, err, multilock.ErrUnavailable)
				require.ErrorContains(t, err, "no vote for another")
				_, err = y.TryLockFor(t.Context(), "k", time.Second)
				require.ErrorIs(t, err, multilock.ErrUnavailable)
			})
		}
	}
}

// Bootstrap with NothingHeld ends a quarantine that a failed attempt has begun, as the error
// of the attempt says.
func TestBootstrapAfterAFailedTryLock(t *testing.T) {
	needGuard(t)
	t.Parallel()
	nodes := startNodes(t, 3)
	l := open(t, nodes)
	_, err := l.TryLock(t.Context(), "k")
	require.ErrorContains(t, err, "Bootstrap with NothingHeld")
	require.NoError(t, l.Bootstrap(t.Context()))
	_, err = l.TryLock(t.Context(), "k")
	require.ErrorIs(t, err, multilock.ErrUnavailable, "nothing was stated")
	nothingHeld(t, open(t, nodes))
	nothingHeld(t, l)
	lease, err := l.TryLock(t.Context(), "k")
	require.NoError(t, err)
	require.NoError(t, lease.Unlock(t.Context()))
	err = l.Bootstrap(t.Context(), nil)
	require.ErrorContains(t, err, "option is nil")
	require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
}

// A node that cannot vote, as it may evict locks, is left out, and one line of the log
// says so.
func TestNodeThatCannotVoteIsLogged(t *testing.T) {
	needGuard(t)
	nodes := startNodes(t, 3)
	nothingHeld(t, open(t, nodes))
	nodes[2].Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	var log redistest.Log
	l := open(t, nodes, multilock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	works := func() { require.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil })) }
	works()
	said := func() int { return log.Count("cannot vote") }
	eventually(t, func() bool { return said() > 0 })
	require.Contains(t, log.String(), "allkeys-lru")
	asked := func() int { return locktest.ScriptCalls(t, locktest.Processes(nodes[2:])) }
	before := asked()
	eventually(t, func() bool { works(); return asked() >= before+2 }) // it is asked again, and that has ended
	require.Error(t, l.Nodes(t.Context())[2].Err)
	require.Equal(t, 1, said(), log.String())
}

// New cannot notice this without a call. The log tells of it, and a lock that lacks the vote.
func TestSameServerTwice(t *testing.T) {
	nodes := startNodes(t, 2)
	var log redistest.Log
	l := open(t, append(nodes, nodes[0]), multilock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	nothingHeld(t, l)
	text := "clients 0 (" + nodes[0].Addr() + ") and 2 (" + nodes[0].Addr() + ") are of one server"
	for range 3 {
		require.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil }))
	}
	eventually(t, func() bool { return strings.Contains(log.String(), text) })
	require.EqualError(t, l.Nodes(t.Context())[2].Err, text)
	nodes[1].Kill()
	eventually(t, func() bool {
		_, err := l.TryLock(t.Context(), "k")
		return err != nil && strings.Contains(err.Error(), text)
	})
}

// A key of a wrong type, or a user without a right, on a quorum of nodes is a refusal and no
// outage, so a lock fails at once. On one node, it costs only that node's vote.
func TestRefusalsOfAQuorum(t *testing.T) {
	nodes := startNodes(t, 3)
	l := open(t, nodes)
	nothingHeld(t, l)
	nodes[0].Do(t, "SET", "k", "x")
	lease, err := l.Lock(t.Context(), "k")
	require.NoError(t, err)
	require.NoError(t, lease.Unlock(t.Context()))
	nodes[1].Do(t, "SET", "k", "x")
	_, err = l.Lock(t.Context(), "k")
	require.ErrorContains(t, err, "WRONGTYPE")
	for _, not := range []error{multilock.ErrUnavailable, multilock.ErrUnknown, multilock.ErrNotAcquired} {
		require.NotErrorIs(t, err, not)
	}
}

// While two of five nodes stand still, a lock costs at most one time-out until that is known,
// and none from then on.
func TestHungMinorityCostsNothing(t *testing.T) {
	nodes := startNodes(t, 5)
	l := open(t, nodes)
	nothingHeld(t, l)
	require.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil }))
	for _, n := range nodes[:2] {
		n.Pause()
		defer n.Resume()
	}
	quick := 0
	for range 20 {
		began := time.Now()
		require.NoError(t, l.Do(t.Context(), "k", func(context.Context) error { return nil }))
		if time.Since(began) < nodeTime*3/4 { // a call to a hung node takes at least as long
			quick++
		}
	}
	require.GreaterOrEqual(t, quick, 10) // the machine may be slow at times
}

func TestNewRefuses(t *testing.T) {
	client := startNodes(t, 1)[0].Client(t)
	for want, clients := range map[string][]rueidis.Client{
		"0 nodes":         {},
		"16 nodes":        make([]rueidis.Client, 16),
		"client 1 is nil": {client, nil},
	} {
		_, err := multilock.New(clients)
		require.ErrorContains(t, err, want)
	}
	one := []rueidis.Client{client}
	for want, opts := range map[string][]multilock.Option{
		"option is nil":              {nil},
		"WithLease: lease 0s":        {multilock.WithLease(0)},
		"longer than WithMaxLease":   {multilock.WithMaxLease(time.Second)},
		"WithMaxLease: lease 1ms":    {multilock.WithMaxLease(time.Millisecond)},
		"WithNodeTimeout: 1µs":       {multilock.WithNodeTimeout(time.Microsecond)},
		"WithLogger: logger is nil":  {multilock.WithLogger(nil)},
		"needs WithFencing":          {multilock.WithFenceExpiry(time.Hour)},
		"WithLocalHandover: -1ns is": {multilock.WithLocalHandover(-1)},
		"WithMaxOutage: -1ns is":     {multilock.WithMaxOutage(-1)},
		"WithMaxWaiters: -1 is":      {multilock.WithMaxWaiters(-1)},
		"WithClockFaults: -1 of 1":   {multilock.WithClockFaults(-1)},
		"WithClockFaults: 1 of 1":    {multilock.WithClockFaults(1)},
	} {
		_, err := multilock.New(one, opts...)
		require.ErrorContains(t, err, want)
	}
	for n, most := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 15: 7} {
		clients := slices.Repeat(one, n)
		l, err := multilock.New(clients, multilock.WithClockFaults(most))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		_, err = multilock.New(clients, multilock.WithClockFaults(most+1))
		require.ErrorContains(t, err, fmt.Sprintf("WithClockFaults: %d of %d nodes, 0 to %d", most+1, n, most))
	}
	l, err := multilock.New(one)
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Lock(t.Context(), "k", multilock.FixedLease(time.Hour))
	require.ErrorContains(t, err, "longer than WithMaxLease")
	require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
}

func TestF25_ClientOptionsAreWarnedAbout(t *testing.T) {
	slow := startNodes(t, 1)[0].Client(t, func(o *rueidis.ClientOption) { o.ConnWriteTimeout = 3 * time.Second })
	for lease, want := range map[time.Duration]string{8 * time.Second: "timeout=3s lease=8s", 9 * time.Second: ""} {
		var log bytes.Buffer
		l, err := multilock.New([]rueidis.Client{slow}, multilock.WithLease(lease), multilock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.Contains(t, log.String(), want)
		require.Equal(t, want == "", log.Len() == 0, log.String())
	}
}
