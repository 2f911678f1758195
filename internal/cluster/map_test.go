package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftovers()...) }

// The server is asked for the slot of each name, of many with braces.
func TestSlot(t *testing.T) {
	s := redistest.Start(t, redistest.ClusterNode(t, "0-16383", "")...)
	names := []string{"", "123456789", "a", "{", "}", "{}", "{}a", "}{", "a{b}c", "{{b}}", "{b}{c}", "foo{}{bar}", "foo{{bar}}zap", "{\x00\xff}"}
	for range 1000 {
		var name strings.Builder
		for range rand.IntN(10) {
			name.WriteByte("ab{}\x80"[rand.IntN(5)])
		}
		names = append(names, name.String())
	}
	for _, name := range names {
		m := s.Do(t, "CLUSTER", "KEYSLOT", name)
		want, err := m.ToInt64()
		require.NoError(t, err)
		require.EqualValues(t, want, Slot(name), "%q", name)
	}
	require.Equal(t, Slot("{a}:b"), Slot("c{a}"))
	require.NotEqual(t, Slot("a"), Slot("b"))
}

func TestMap(t *testing.T) {
	c := redistest.StartCluster(t, 3, 1)
	client := c.Client(t)
	m := New(client)
	require.Empty(t, m.Node("a"))
	require.Empty(t, m.Masters())
	holds := func(t *testing.T) {
		t.Helper()
		require.NoError(t, m.Refresh(t.Context()))
		var masters []string
		for _, s := range c.Masters(t) {
			masters = append(masters, s.Addr())
		}
		require.ElementsMatch(t, masters, m.Masters())
		nodes := client.Nodes()
		for i := range 50 {
			name := fmt.Sprint("name:", i)
			require.Equal(t, c.Owner(t, name).Addr(), m.Node(name))
			require.Contains(t, nodes, m.Node(name))
		}
	}
	holds(t)
	t.Run("slot moves", func(t *testing.T) {
		to := c.Owner(t, "a")
		for i := range 50 {
			if name := fmt.Sprint("name:", i); c.Owner(t, name) != to {
				c.Migrate(t, c.Slot(t, name), to)
				require.NotEqual(t, to.Addr(), m.Node(name), "before Refresh")
				break
			}
		}
		holds(t)
	})
	t.Run("paused nodes delay nobody", func(t *testing.T) {
		running := c.Owner(t, "a")
		for _, s := range append(c.Masters(t), c.Replicas(t)...) {
			if s != running {
				s.Pause()
				defer s.Resume()
			}
		}
		refreshed := 0
		for range 20 {
			if m.Refresh(t.Context()) == nil {
				refreshed++
			}
		}
		require.GreaterOrEqual(t, refreshed, 10, "a machine may be too busy for some; if one waited for another, one of six would not")
		running.Pause()
		before := m.Node("a")
		require.ErrorIs(t, m.Refresh(t.Context()), context.DeadlineExceeded)
		require.Equal(t, before, m.Node("a"))
		running.Resume()
	})
}

func TestRefreshIsShared(t *testing.T) {
	m := New(nil)
	f := &flight{done: make(chan struct{}), err: errors.New("the same")}
	m.flight = f
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() { require.Equal(t, f.err, m.Refresh(t.Context())) })
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, m.Refresh(ctx), context.Canceled)
	close(f.done)
	all.Wait()
}

func TestSharded(t *testing.T) {
	c := redistest.StartCluster(t, 2, 0)
	client := c.Client(t)
	m := New(client)
	masters := c.Masters(t)
	each := func(f func(*redistest.Server)) {
		for _, s := range masters {
			f(s)
		}
	}
	_, err := masters[0].TryDo("PUBSUB", "SHARDNUMSUB")
	want := err == nil

	each((*redistest.Server).Pause)
	_, err = m.Sharded(t.Context())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	each((*redistest.Server).Resume)
	got, err := m.Sharded(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got)

	// The Java clients of a user without the right to ask find none.
	each(func(s *redistest.Server) { s.Do(t, "ACL", "SETUSER", "default", "-pubsub") })
	got, err = m.Sharded(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, got, "asked once")
	got, err = New(client).Sharded(t.Context())
	require.NoError(t, err)
	require.False(t, got)
}

// Another call of the client waits for the same dial as the question for the slots, which another node has answered.
func TestRefreshCancelsNoDial(t *testing.T) {
	c := redistest.StartCluster(t, 2, 0)
	quick, slow := c.Masters(t)[0], c.Owner(t, "foo")
	if quick == slow {
		quick = c.Masters(t)[1]
	}
	begun, reached := make(chan struct{}), make(chan struct{})
	begin := sync.OnceFunc(func() { close(begun) })
	client := c.Client(t, func(o *rueidis.ClientOption) {
		o.InitAddress = []string{quick.Addr(), quick.Addr()}
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if addr == slow.Addr() {
				begin()
				select {
				case <-reached:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			return d.DialContext(ctx, "tcp", addr)
		}
	})
	quick.Pause()
	refreshed, got := make(chan error, 1), make(chan error, 1)
	go func() { refreshed <- New(client).Refresh(t.Context()) }()
	<-begun
	go func() { got <- client.Do(t.Context(), client.B().Set().Key("foo").Value("1").Build()).Error() }()
	time.Sleep(50 * time.Millisecond) // until that waits for the dial as well; nothing shows it
	quick.Resume()
	require.NoError(t, <-refreshed)
	close(reached)
	require.NoError(t, <-got)
}
