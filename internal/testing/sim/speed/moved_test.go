package speed_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
)

// moving is a fleet with as many servers again, to which names may lead the first process.
type moving struct {
	*fleet
	nodes int

	mu    sync.Mutex
	moved bool                // guarded by mu; new connections of the first process reach the other servers
	last  map[string]net.Conn // guarded by mu; the last connection of the first process to each address
}

func openMoving(t *testing.T, kind string, processes int) *moving {
	m := &moving{nodes: nodesOf(kind), last: make(map[string]net.Conn)}
	m.fleet = &fleet{t: t, world: sim.NewWorld(t, 1, processes, 2*m.nodes)}
	other := make(map[string]string)
	for i, l := range m.world.Links[0][:m.nodes] {
		other[l.Addr()] = m.world.Links[0][m.nodes+i].Addr()
	}
	for p := range processes {
		clients := m.world.Clients(p, noPings, func(o *rueidis.ClientOption) {
			dial := o.DialCtxFn
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
				m.mu.Lock()
				defer m.mu.Unlock()
				if to := other[addr]; to != "" && m.moved {
					addr = to
				}
				conn, err := dial(ctx, addr, d, c)
				if p == 0 {
					m.last[addr] = conn
				}
				return conn, err
			}
		})
		m.add(kind, clients[:m.nodes])
	}
	return m
}

// wait has the first process wait for the key, and returns when it definitely listens.
func (m *moving) wait() <-chan *holdfast.Lease {
	got := make(chan *holdfast.Lease, 1)
	go func() { got <- m.lock(0, "k") }()
	time.Sleep(5 * time.Second)
	return got
}

// moveSubscriptions has the subscriptions of the first process made anew at the other servers, while its calls stay.
func (m *moving) moveSubscriptions() {
	m.mu.Lock()
	m.moved = true
	for _, l := range m.world.Links[0][:m.nodes] {
		m.last[l.Addr()].Close()
	}
	m.mu.Unlock()
	time.Sleep(100 * time.Millisecond)
}

// served requires that the first process gets a key soon after it was free.
func (m *moving) served(got <-chan *holdfast.Lease, free time.Time) {
	select {
	case e := <-got:
		m.t.Logf("served after %v", time.Since(free))
		require.Less(m.t, time.Since(free), 1100*time.Millisecond)
		require.NoError(m.t, e.Unlock(m.t.Context()))
	case <-time.After(3 * lease):
		require.FailNow(m.t, "not served")
	}
}

func eachKind(t *testing.T, f func(t *testing.T, kind string)) {
	for _, kind := range []string{"rlock", "fair", "rwlock", "semaphore", "multilock"} {
		t.Run(kind, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { f(t, kind) }) })
	}
}

// Each new subscription of a waiter is at another server than its calls. It is served in turn: others that want the key
// all the time do not go first forever, nor does it wait for the holder's lease.
func TestF36_DeafWaiter(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		m := openMoving(t, kind, 3)
		held := m.lock(1, "k")
		got := m.wait()
		m.moveSubscriptions()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if kind == "fair" {
			for p := range 2 {
				for range 2 {
					go func() {
						for ctx.Err() == nil {
							_ = m.lockers[1+p].Do(ctx, "k", func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil })
						}
					}()
				}
			}
		}
		time.Sleep(10 * time.Second)
		free := time.Now()
		require.NoError(t, held.Unlock(t.Context()))
		m.served(got, free)
	})
}

// The subscription is made anew at another server, a release at the old one is missed, and the calls follow.
func TestF36_CallsFollowTheSubscription(t *testing.T) {
	eachKind(t, func(t *testing.T, kind string) {
		m := openMoving(t, kind, 2)
		held := m.lock(1, "k")
		got := m.wait()
		m.moveSubscriptions()
		require.NoError(t, held.Unlock(t.Context()))
		for _, l := range m.world.Links[0][:m.nodes] {
			l.Cut()
		}
		free := time.Now()
		m.served(got, free)
	})
}
