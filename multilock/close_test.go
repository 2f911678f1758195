package multilock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/multilock"
)

func exists(t *testing.T, s *redistest.Server, key string) bool {
	t.Helper()
	m := s.Do(t, "EXISTS", key)
	n, err := m.AsInt64()
	require.NoError(t, err)
	return n == 1
}

// One node of three refuses the release for a while: Close goes on. If it is for too long, Close
// says so, though the lock is free.
func TestCloseRepeatsOnAMinority(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	for _, allowed := range []bool{true, false} {
		l := open(t, nodes, multilock.WithoutRestartGuard(), multilock.WithLease(9*time.Second), multilock.WithNodeTimeout(900*time.Millisecond))
		_, err := l.Lock(t.Context(), "k")
		require.NoError(t, err)
		last := nodes[2]
		eventually(t, func() bool { return exists(t, last, "k") })
		last.Do(t, "ACL", "SETUSER", "default", "resetkeys")
		last.Do(t, "ACL", "LOG", "RESET")
		closed := make(chan error, 1)
		go func() { closed <- l.Close() }()
		eventually(t, func() bool {
			log := last.Do(t, "ACL", "LOG")
			return strings.Contains(log.String(), `"key"`)
		})
		if allowed {
			last.Do(t, "ACL", "SETUSER", "default", "allkeys")
			require.NoError(t, <-closed)
			require.False(t, exists(t, last, "k"))
			continue
		}
		err = <-closed
		require.ErrorIs(t, err, holdfast.ErrUnknown)
		require.ErrorContains(t, err, `"k": `+last.Addr()+": NOPERM")
		require.False(t, exists(t, nodes[0], "k"))
	}
}

// All nodes refuse the release, for as long as Close tries: it says so.
func TestCloseTellsWhatNodesRefuse(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	l := open(t, nodes, multilock.WithoutRestartGuard(), multilock.WithLease(9*time.Second), multilock.WithNodeTimeout(900*time.Millisecond))
	_, err := l.Lock(t.Context(), "k")
	require.NoError(t, err)
	for _, n := range nodes {
		n.Do(t, "ACL", "SETUSER", "default", "resetkeys")
	}
	err = l.Close()
	require.ErrorIs(t, err, holdfast.ErrUnknown)
	require.ErrorContains(t, err, `"k"`)
}

// A node that has been dead for longer than a lease has nothing of a hold any more: Close does not
// wait for it, and names no key.
func TestCloseWaitsForNoNodeThatIsLongDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(t, 1, 1, 3)
		l, err := multilock.New(w.Clients(0), multilock.WithoutRestartGuard())
		require.NoError(t, err)
		lease, err := l.Lock(t.Context(), "k")
		require.NoError(t, err)
		time.Sleep(time.Second)
		w.Servers[2].Kill()
		time.Sleep(5 * time.Minute)
		require.NoError(t, lease.Err())
		began := time.Now()
		require.NoError(t, l.Close())
		require.Less(t, time.Since(began), time.Second)
	})
}

// A program closes the client of one node before the locker, which then cannot release anything
// there: Close names the key, at once.
func TestCloseTellsOfAClosedClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(t, 1, 1, 3)
		clients := w.Clients(0)
		l, err := multilock.New(clients, multilock.WithoutRestartGuard())
		require.NoError(t, err)
		_, err = l.Lock(t.Context(), "k")
		require.NoError(t, err)
		time.Sleep(time.Second)
		require.True(t, w.Servers[2].Redis().Exists("k"))
		clients[2].Close()
		began := time.Now()
		err = l.Close()
		require.True(t, w.Servers[2].Redis().Exists("k"))
		require.ErrorIs(t, err, holdfast.ErrUnknown)
		require.ErrorContains(t, err, `"k": `+w.Links[0][2].Addr()+": "+rueidis.ErrClosing.Error())
		require.Less(t, time.Since(began), time.Second)
	})
}

// Where nothing is left, it names none: the client was closed before the lock.
func TestCloseTellsOnlyOfWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := sim.NewWorld(t, 1, 1, 3)
		clients := w.Clients(0)
		clients[2].Close()
		l, err := multilock.New(clients, multilock.WithoutRestartGuard())
		require.NoError(t, err)
		_, err = l.Lock(t.Context(), "k")
		require.NoError(t, err)
		require.NoError(t, l.Close())
	})
}
