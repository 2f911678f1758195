package multilock_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// wired is a locker with a proxy of its own before each node.
type wired struct {
	*multilock.Locker
	ways []*redistest.Proxy
}

// wire opens a locker that has used the nodes already.
func wire(t *testing.T, nodes []*redistest.Server, opts ...multilock.Option) wired {
	t.Helper()
	w := wired{}
	var clients []rueidis.Client
	for _, n := range nodes {
		way := redistest.NewProxy(t, n.Addr())
		w.ways = append(w.ways, way)
		clients = append(clients, n.Client(t, func(o *rueidis.ClientOption) {
			o.InitAddress, o.ForceSingleClient = []string{way.Addr()}, true
		}))
	}
	var err error
	w.Locker, err = multilock.New(clients, onOld(append([]multilock.Option{multilock.WithNodeTimeout(nodeTime), multilock.WithLease(longLease)}, opts...))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, way := range w.ways {
			way.OnRequest(nil)
			way.HoldRequests(false)
			way.Release()
		}
		_ = w.Close()
	})
	warm := "warm" + fmt.Sprintf("%p", w.Locker)
	l, err := w.Lock(t.Context(), warm)
	require.NoError(t, err)
	eventually(t, func() bool { return !slices.Contains(owners(t, nodes, warm), "") }) // all nodes have been asked
	require.NoError(t, l.Unlock(t.Context()))
	return w
}

// die cuts the locker off for ever, as if its process had died.
func (w wired) die() {
	for _, way := range w.ways {
		way.Refuse(true)
		way.Cut()
	}
}

// owners returns the owner of key on each node; "" if there is none.
func owners(t *testing.T, nodes []*redistest.Server, key string) (all []string) {
	t.Helper()
	for _, n := range nodes {
		m := n.Do(t, "HKEYS", key)
		fields, err := m.AsStrSlice()
		require.NoError(t, err)
		all = append(all, append(fields, "")[0])
	}
	return all
}

// eventually asks until cond is true.
func eventually(t *testing.T, cond func() bool) {
	t.Helper()
	locktest.Await(t, cond)
}

// clocked starts nodes with clocks that a test can set, and with their votes.
func clocked(t *testing.T, n int, opts ...multilock.Option) (nodes []*redistest.Server) {
	t.Helper()
	for range n {
		nodes = append(nodes, redistest.StartWithClock(t))
	}
	nothingHeld(t, open(t, nodes, opts...))
	return nodes
}

// Clocks jump before the nodes that lack a lease are asked again: a rival's failed round had
// them. By default that lets two holders in; WithClockFaults(k) keeps them apart while no
// more than k clocks jump.
func TestG1_F34_ClocksThatJumpBeforeTheRepair(t *testing.T) {
	t.Parallel()
	const nodes = 5
	long := multilock.WithLease(100 * time.Second) // nothing ends by itself
	for _, c := range []struct {
		faults, missing int // nodes that the rival has
		got             bool
		jumps           int
		two             bool
	}{
		{0, 2, true, 0, false}, {0, 2, true, 1, true},
		{1, 2, false, 0, false}, {1, 1, true, 1, false},
		{2, 1, false, 0, false}, {2, 0, true, 2, false},
	} {
		t.Run(fmt.Sprintf("%d faults, %d missing, %d jumps", c.faults, c.missing, c.jumps), func(t *testing.T) {
			t.Parallel()
			servers := clocked(t, nodes, long)
			votes := nodes - c.missing
			faults := multilock.WithClockFaults(c.faults)
			rival, holder := wire(t, servers, long), wire(t, servers, long, faults)
			second, third := wire(t, servers, long, faults), wire(t, servers, long)

			for _, way := range rival.ways[:votes] {
				way.HoldRequests(true)
			}
			failed := make(chan error, 1)
			go func() {
				_, err := rival.TryLock(t.Context(), "k")
				failed <- err
			}()
			eventually(t, func() bool { return !slices.Contains(owners(t, servers, "k")[votes:], "") })

			var answered sync.WaitGroup
			for _, way := range holder.ways[votes:] {
				answered.Add(1)
				asked := false
				way.OnRequest(func(cmd []string) redistest.Verdict {
					if !slices.Contains(cmd, "k") {
						return redistest.Pass
					}
					if asked {
						return redistest.Hold // a repair
					}
					asked = true
					return redistest.Pass
				})
				once := sync.Once{}
				way.OnReply(func(cmd []string) redistest.Verdict {
					if slices.Contains(cmd, "k") {
						once.Do(answered.Done)
					}
					return redistest.Pass
				})
			}
			lease, err := holder.TryLock(t.Context(), "k")
			answered.Wait()
			for _, way := range rival.ways[:votes] {
				way.Cut()
			}
			require.Error(t, <-failed)
			if !c.got {
				require.ErrorContains(t, err, fmt.Sprintf("of 5 nodes said yes, %d are needed", 3+c.faults))
				return
			}
			require.NoError(t, err)
			eventually(t, func() bool { return slices.Equal(owners(t, servers, "k")[votes:], make([]string, nodes-votes)) })

			for _, s := range servers[:c.jumps] {
				s.SetClock(time.Hour, 1)
			}
			got := false
			for _, other := range []wired{second, third} {
				l, err := other.TryLock(t.Context(), "k")
				if err == nil {
					got = true
					require.NoError(t, l.Err())
				}
			}
			require.NoError(t, lease.Err())
			require.True(t, time.Now().Before(lease.Deadline()))
			require.Equal(t, c.two, got, "two holders, as far as this mode promises")
		})
	}
}

// The lease of a dead holder ends later on one node, after a late repair. No waiter waits for
// that node.
func TestG4_CrashAfterALateRepair(t *testing.T) {
	t.Parallel()
	const lease = 12 * time.Second
	nodes := startNodes(t, 3)
	b := open(t, nodes)
	nothingHeld(t, b)
	a := wire(t, nodes)
	nodes[2].Pause()
	_, err := a.Lock(t.Context(), "k", multilock.FixedLease(lease))
	require.NoError(t, err)
	eventually(t, func() bool { return left(t, nodes[0], "k") < lease/3 })
	nodes[2].Resume()
	eventually(t, func() bool { return owners(t, nodes, "k")[2] != "" })
	served(t, a, b, nodes)
}

// The same for a node with a slow clock.
func TestG4_F34_CrashBesideASlowClock(t *testing.T) {
	t.Parallel()
	nodes := clocked(t, 3)
	a, b := wire(t, nodes), wire(t, nodes)
	b.ways[1].SetDelay(0, 100*time.Millisecond) // the slow one is among the first to answer
	_, err := a.Lock(t.Context(), "k", multilock.FixedLease(6*time.Second))
	require.NoError(t, err)
	eventually(t, func() bool { return owners(t, nodes, "k")[2] != "" })
	nodes[2].SetClock(-time.Minute, 1)
	served(t, a, b.Locker, nodes)
}

// served lets a holder die and requires that another gets the key while the last node still
// keeps it for the dead holder.
func served(t *testing.T, dead wired, next *multilock.Locker, nodes []*redistest.Server) {
	t.Helper()
	dead.die()
	before := owners(t, nodes, "k")[2]
	l, err := next.Lock(locktest.Bounded(t), "k")
	require.NoError(t, err)
	require.NotEmpty(t, before)
	require.Equal(t, before, owners(t, nodes, "k")[2], "the last node still has it")
	require.NoError(t, l.Unlock(t.Context()))
}

// left is how long a node still has key.
func left(t *testing.T, n *redistest.Server, key string) time.Duration {
	t.Helper()
	m := n.Do(t, "PTTL", key)
	ms, err := m.AsInt64()
	require.NoError(t, err)
	return time.Duration(ms) * time.Millisecond
}
