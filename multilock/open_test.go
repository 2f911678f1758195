package multilock_test

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// openLater opens nodes that may be away.
func openLater(t *testing.T, nodes []rueidis.ClientOption, opts ...holdfast.Option) *multilock.Locker {
	t.Helper()
	return locktest.Opened(multilock.Open(nodes, onOld(append(opts, patient))...))(t)
}

// options are those of clients of all servers.
func (w world) options() (all []rueidis.ClientOption) {
	for _, s := range w.Servers {
		s.Client(w, func(o *rueidis.ClientOption) { all = append(all, *o) })
	}
	return all
}

// With two of five nodes away at its start, a program locks. When they come, they vote like
// any node that has restarted.
func TestOpenWhileNodesAreAway(t *testing.T) {
	inWorld(t, 1, 5, func(w world) {
		w.vote(w.open(0))
		options := w.options()
		for i, s := range w.Servers[3:] {
			s.Kill()
			require.Error(w, locktest.ErrOf(rueidis.NewClient(options[3+i])), "if rueidis can do this by itself, Open is not needed")
		}
		var log redistest.Log
		l := openLater(w.T, options, logTo(&log))
		require.Equal(w, 2, log.Count("cannot be reached yet"), log.String())
		locks := func() {
			w.Helper()
			require.NoError(w, l.Do(w.Context(), "k", func(context.Context) error { return nil }))
		}
		for range 5 { // also when nodes count as away
			locks()
		}

		w.Servers[3].Restart()
		w.Servers[4].Restart()
		w.Servers[0].Kill()
		w.Servers[1].Kill()
		locks()
		for i, n := range l.Nodes(w.Context()) {
			require.Equal(w, i >= 2, n.Vote, "%d: %+v", i, n)
		}
	})
}

func TestOpenWhileAllNodesAreAway(t *testing.T) {
	inWorld(t, 1, 3, func(w world) {
		const outage = 3 * time.Second
		options := w.options()
		for _, s := range w.Servers {
			s.Kill()
		}
		l := openLater(w.T, options, holdfast.WithMaxOutage(outage))
		require.ErrorIs(w, locktest.ErrOf(l.TryLock(w.Context(), "k")), holdfast.ErrUnavailable)
		began := time.Now()
		require.ErrorIs(w, locktest.ErrOf(l.Lock(w.Context(), "k")), holdfast.ErrUnavailable)
		require.InDelta(w, outage, time.Since(began), float64(time.Second))

		for _, s := range w.Servers {
			s.Restart()
		}
		w.vote(l)
		settle() // it asks nodes that were away now and then
		require.NoError(w, locktest.Must(l.TryLock(w.Context(), "k"))(w).Unlock(w.Context()))

		connections := func() (n int) {
			for _, s := range w.Servers {
				n += strings.Count(s.Do(w, "CLIENT", "LIST").String(), "id=")
			}
			return n
		}
		require.Greater(w, connections(), 3)
		require.NoError(w, l.Close())
		settle()
		require.Equal(w, 3, connections(), "those of the administrator")
	})
}

// at are the options of a client of a real server.
func at(s *redistest.Server) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{s.Addr()}}
}

// Close ends while calls still dial a node that does not answer, and leaves nothing. Not
// parallel, as it counts goroutines.
func TestCloseWhileOpenedNodesAreDialled(t *testing.T) {
	options := []rueidis.ClientOption{at(redistest.Start(t)), at(redistest.Start(t)), {InitAddress: []string{"127.0.0.1:1"}}}
	before := goleak.IgnoreCurrent()
	var opened atomic.Bool
	dials := make(chan time.Duration, 100)
	options[2].DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		if !opened.Load() {
			return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded}
		}
		dials <- d.Timeout
		ctx, cancel := context.WithTimeout(ctx, d.Timeout)
		defer cancel()
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
	}
	l := locktest.Must(multilock.Open(options, holdfast.WithLease(2*time.Second), multilock.WithMaxLease(time.Hour)))(t)
	opened.Store(true)
	waited := locktest.GoLock(l, context.Background(), "k") // new nodes have no vote for an hour
	require.Equal(t, 500*time.Millisecond, <-dials, "a quarter of the lease")
	require.NoError(t, l.Close())
	require.ErrorIs(t, (<-waited).Err, holdfast.ErrClosed)
	require.NoError(t, l.Close())
	goleak.VerifyNone(t, before)
}

// Clients that Open makes have small buffers. Not parallel, as it counts bytes.
func TestOpenChoosesWhatSuitsLocks(t *testing.T) {
	var nodes []rueidis.ClientOption
	for range 5 {
		nodes = append(nodes, at(redistest.Start(t)))
	}
	before := heap()
	l := openLater(t, nodes)
	require.Less(t, heap()-before, 2<<20, "bytes; they are 6.7 MiB with the defaults of rueidis, of which either buffer is 2.5 MiB")
	require.NoError(t, l.Close())
}

// heap is how many bytes are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A server that knows no AUTH repeats the password, which the log does not.
func TestOpenLogsNoPassword(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t, "--rename-command", "HELLO", "", "--rename-command", "AUTH", "")
	var log redistest.Log
	l := openLater(t, []rueidis.ClientOption{{InitAddress: []string{node.Addr()}, Username: "u", Password: "canary"}},
		logTo(&log))
	unknown := "unknown command ['`]AUTH['`]" // "`" before Redis 7
	require.Regexp(t, unknown, log.String())
	require.NotContains(t, log.String(), "canary")
	_, err := l.TryLock(t.Context(), "k")
	require.Regexp(t, unknown, err)
	require.NotContains(t, err.Error(), "canary")
	if redistest.Before7() {
		return // without restart guard, a node that refuses INFO votes
	}
	for _, node := range l.Nodes(t.Context()) {
		require.Regexp(t, unknown, node.Err)
		require.NotContains(t, node.Err.Error(), "canary")
	}
}

// What New refuses, Open refuses, and what could not connect later.
func TestOpenChecks(t *testing.T) {
	t.Parallel()
	one := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}
	with := func(change func(*rueidis.ClientOption)) []rueidis.ClientOption {
		o := one
		change(&o)
		return []rueidis.ClientOption{one, o}
	}
	for _, c := range []struct {
		nodes []rueidis.ClientOption
		opts  []holdfast.Option
		says  string
	}{
		{nil, nil, "Open: 0 nodes"},
		{make([]rueidis.ClientOption, 16), nil, "Open: 16 nodes"},
		{with(func(o *rueidis.ClientOption) { o.InitAddress = nil }), nil, "Open: node 1 needs"},
		{with(func(o *rueidis.ClientOption) { o.InitAddress = []string{""} }), nil, "Open: node 1 needs"},
		{with(func(o *rueidis.ClientOption) { o.InitAddress = []string{"a:1", "b:1"} }), nil, "Open: node 1 needs"},
		{with(func(o *rueidis.ClientOption) { o.InitAddress = []string{"redis://u:canary@a:1"} }), nil, "Open: node 1 needs host and port"},
		{with(func(o *rueidis.ClientOption) { o.InitAddress = []string{"u:canary@a:1"} }), nil, "Open: node 1 needs host and port"},
		{with(func(o *rueidis.ClientOption) { o.Sentinel.MasterSet = "m" }), nil, "Open: node 1 is not a single server"},
		{with(func(o *rueidis.ClientOption) { o.Standalone.EnableRedirect = true }), nil, "Open: node 1 is not a single server"},
		{with(func(o *rueidis.ClientOption) { o.Standalone.ReplicaAddress = []string{"b:1"} }), nil, "Open: node 1 is not a single server"},
		{with(func(o *rueidis.ClientOption) { o.PipelineMultiplex = 100 }), nil, "Open: node 1: " + rueidis.ErrWrongPipelineMultiplex.Error()},
		{with(func(o *rueidis.ClientOption) { o.ReplicaOnly = true }), nil, "Open: node 1: " + rueidis.ErrReplicaOnlyNotSupported.Error()},
		{[]rueidis.ClientOption{one}, []holdfast.Option{nil}, "Open: option is nil"},
		{[]rueidis.ClientOption{one}, []holdfast.Option{multilock.WithClockFaults(1)}, "WithClockFaults: 1 of 1 nodes"},
		{[]rueidis.ClientOption{one}, []holdfast.Option{holdfast.WithFencing(), holdfast.WithFenceExpiry(time.Second)}, "WithFenceExpiry: 1s is shorter than WithMaxLease, 30s"},
	} {
		_, err := multilock.Open(c.nodes, c.opts...)
		locktest.RequireSentinel(t, err, holdfast.ErrInvalidArgument, c.says)
		require.NotContains(t, err.Error(), "canary")
	}

	openLater(t, []rueidis.ClientOption{at(redistest.Start(t))}, holdfast.WithFencing(), multilock.WithMaxLease(8*24*time.Hour)) // longer than counters last by default
}
