package faults

import (
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func init() {
	register("F36_CallsFollowTheName", testCallsFollow, ofOneHolder|noClusterNode|realServers)
	register("F36_OneHolder", testOneHolderAfterMove, fairOnly|noClusterNode|realServers)
	register("F36_DeafSubscription", testDeafSubscription, ofOneHolder|noClusterNode)
	register("F36_ProxySwapsItsServer", testProxySwaps, ofOneHolder|noClusterNode)
	register("F36_ClientClosedFirst", testClientClosedFirst, ofOneHolder|noClusterNode)
	register("F36_GuardedNodesFollowTheName", testGuardedNodesFollow, severalNodes|noClusterNode|realServers)
}

// moving is servers with a name each, and others for which the names will stand.
type moving struct {
	k      locktest.Kind
	names  []*redistest.Name
	before locktest.Topology
	after  locktest.Topology
}

func newMoving(t *testing.T, k locktest.Kind, args ...string) *moving {
	m := &moving{k: k, before: k.Start(t, args...), after: k.Start(t, args...)}
	for _, s := range m.before {
		m.names = append(m.names, redistest.NewName(s.Addr()))
	}
	return m
}

// open makes a locker on clients of its own, which dial the names.
func (m *moving) open(t *testing.T, o locktest.Options) locktest.Locker {
	t.Helper()
	return m.k.Open(t, m.before.ClientOf(t, func(i int) func(*rueidis.ClientOption) { return m.names[i].Dialled }), o)
}

// newReplicating is newMoving with the others as replicas of the servers.
func newReplicating(t *testing.T, k locktest.Kind) *moving {
	m := newMoving(t, k, "--repl-diskless-sync-delay", "0")
	for i, s := range m.before {
		host, port, err := net.SplitHostPort(s.Addr())
		require.NoError(t, err)
		m.after[i].Do(t, "REPLICAOF", host, port)
		locktest.Await(t, func() bool { return locktest.Number(t, s, "WAIT", "1", "100") == 1 })
	}
	return m
}

// switchOver has servers and replicas change their places, as an operator plans it: all
// that was written is known to the new masters.
func (m *moving) switchOver(t *testing.T) {
	t.Helper()
	for _, s := range m.before {
		s.Do(t, "FAILOVER")
	}
	for i, s := range m.before {
		locktest.Await(t, func() bool { return roleOf(t, s) == "slave" && roleOf(t, m.after[i]) == "master" })
	}
	m.move()
}

func (m *moving) move() {
	for i, n := range m.names {
		n.Move(m.after[i].Addr())
	}
}

func roleOf(t *testing.T, s locktest.Server) string {
	t.Helper()
	reply := locktest.Must(s.Do(t, "ROLE").ToArray())(t)
	return locktest.Must(reply[0].ToString())(t)
}

// The old master lives on as a replica, and refuses all writes. Calls reach the new one by
// themselves, leases live on, and waiters are served.
func testCallsFollow(t *testing.T, k locktest.Kind) {
	const lease = 45 * time.Second
	t.Run("alone", func(t *testing.T) { callsFollow(t, k, locktest.Options{Lease: lease, Unguarded: true}) })
	if k.Nodes == 0 {
		t.Run("with replicas", func(t *testing.T) {
			callsFollow(t, k, locktest.Options{Lease: lease, Replicas: 1, ReplicaTimeout: time.Second})
		})
	}
}

func callsFollow(t *testing.T, k locktest.Kind, o locktest.Options) {
	m := newReplicating(t, k)
	here := m.open(t, o)
	o.Lease = locktest.Long // longer than any wait here
	there := m.open(t, o)
	ctx := locktest.Bounded(t)
	var burst sync.WaitGroup // with replicas, it leaves a hundred connections that are idle
	for i := range 100 {
		burst.Go(func() { assert.NoError(t, locktest.Cycle(here, ctx, "burst"+strconv.Itoa(i))) })
	}
	burst.Wait()
	held, freed, busy := locktest.Lock(t, here, ctx, "held"), locktest.Lock(t, here, ctx, "freed"), locktest.Lock(t, there, ctx, "busy")
	waiting := locktest.GoLock(here, ctx, "busy")
	locktest.Await(t, func() bool { return k.Waiting(t, m.before, "busy") == 1 })
	m.switchOver(t)

	before := held.Deadline()
	locktest.Await(t, func() bool { return held.Deadline().After(before) || held.Err() != nil })
	require.NoError(t, held.Err(), "renewals do not follow")
	require.NoError(t, freed.Unlock(ctx))
	require.NoError(t, locktest.Retry(t, there, "other").Unlock(ctx))
	require.NoError(t, busy.Unlock(ctx))
	next := locktest.Got(t, waiting)
	require.NoError(t, next.Unlock(ctx))
	require.NoError(t, held.Unlock(ctx))
	for _, key := range []string{"held", "freed", "busy"} {
		locktest.Gone(t, m.after, key)
	}
}

// A promoted node has no vote for the longest lease. Then it votes again, though nobody has
// held anything meanwhile, so that nothing was written at the old masters.
func testGuardedNodesFollow(t *testing.T, k locktest.Kind) {
	m := newReplicating(t, k)
	locker := m.open(t, locktest.Options{Lease: 30 * time.Second, MaxLease: 30 * time.Second, MaxOutage: ptr(locktest.Long)})
	ctx := locktest.Bounded(t)
	require.NoError(t, locktest.Lock(t, locker, ctx, "k").Unlock(ctx))
	m.switchOver(t)
	require.NoError(t, locktest.Lock(t, locker, ctx, "k").Unlock(ctx))
}

// What cuts the connections of calls, and not the subscription's, has calls follow the name.
func (m *moving) cutCalls(t *testing.T) {
	t.Helper()
	m.before.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
}

// The subscription stays at the old master, a replica now, which passes on what the new one
// publishes. A grant reaches one waiter.
func testOneHolderAfterMove(t *testing.T, k locktest.Kind) {
	m := newReplicating(t, k)
	o := locktest.Options{Lease: locktest.Long}
	var lockers []locktest.Locker
	for range 3 {
		lockers = append(lockers, m.open(t, o))
	}
	ctx := locktest.Bounded(t)
	round := func(key string) {
		t.Helper()
		first := locktest.Lock(t, lockers[0], ctx, key)
		one, other := locktest.GoLock(lockers[1], ctx, key), locktest.GoLock(lockers[2], ctx, key)
		locktest.Await(t, func() bool { return len(locktest.Queued(t, m.after, key)) == 2 })
		require.NoError(t, first.Unlock(ctx))
		next := locktest.Got(t, firstOf(one, other))
		time.Sleep(100 * time.Millisecond) // many round trips
		require.Zero(t, len(one)+len(other), "two holders")
		require.NoError(t, next.Unlock(ctx))
		require.NoError(t, locktest.Got(t, firstOf(one, other)).Unlock(ctx))
	}
	round("before") // replicas say it, too
	m.switchOver(t)
	m.cutCalls(t)
	for i := range 5 {
		round("after" + strconv.Itoa(i))
	}
}

// Both servers are masters, so nobody refuses anything. The subscription stays at the old one,
// and is replaced while somebody waits on it.
func testDeafSubscription(t *testing.T, k locktest.Kind) {
	m := newMoving(t, k)
	m.deafens(t, m.open, func() {
		m.move()
		m.cutCalls(t)
	})
}

// No connection is cut: the proxy goes on with all of them at another server, without their
// subscriptions.
func testProxySwaps(t *testing.T, k locktest.Kind) {
	m := newMoving(t, k)
	ways := m.before.Behind(t)
	m.deafens(t, func(t *testing.T, o locktest.Options) locktest.Locker {
		return k.Open(t, m.before.Client(t, func(c *rueidis.ClientOption) { c.InitAddress = []string{ways.Addr()} }), o)
	}, func() {
		for i, p := range ways.All {
			p.Swap(m.after[i].Addr())
		}
	})
}

// deafens requires that waiters are served long before a lease is over, after move has left a
// subscription behind.
func (m *moving) deafens(t *testing.T, open func(*testing.T, locktest.Options) locktest.Locker, move func()) {
	k := m.k
	here, there := open(t, locktest.Options{Lease: locktest.Long, Unguarded: true}), open(t, locktest.Options{Lease: locktest.Long, Unguarded: true})
	ctx := locktest.Bounded(t)
	busy := locktest.Lock(t, there, ctx, "busy")
	waiting := locktest.GoLock(here, ctx, "busy")
	locktest.Await(t, func() bool { return k.Waiting(t, m.before, "busy") == 1 })
	move()
	held := locktest.Retry(t, there, "k") // a call may have been under way
	next := locktest.GoLock(here, ctx, "k")
	channel := k.Channel("k")
	if k.Fair {
		locktest.Await(t, func() bool { return len(locktest.Queued(t, m.after, "k")) == 1 })
		channel = locktest.InboxOf("k", locktest.Queued(t, m.after, "k")[0])
	}
	locktest.Await(t, func() bool { return locktest.Listeners(t, m.after, channel) == 1 })
	require.NoError(t, held.Unlock(ctx))
	require.NoError(t, locktest.Got(t, next).Unlock(ctx))
	require.NoError(t, locktest.Got(t, waiting).Unlock(ctx), "nobody holds it at the new server")
	require.Error(t, busy.Unlock(ctx))
}

// A program closes a client before its locker, which then can call no more. Its waiter is told
// before the holder's lease is over, and keeps nobody out.
func testClientClosedFirst(t *testing.T, k locktest.Kind) {
	s := k.Start(t)
	client := s.Client(t)
	o := locktest.Options{Lease: locktest.Long, Unguarded: true}
	holder, closed, other := k.Open(t, s.Client(t), o), k.Open(t, client, o), k.Open(t, s.Client(t), o)
	held := locktest.Lock(t, holder, locktest.Bounded(t), "k")
	first := locktest.GoLock(closed, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "k") == 1 })
	second := locktest.GoLock(other, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "k") == 2 })
	client.Close()
	err := locktest.Within(t, first).Err
	locktest.RequireSentinel(t, err, nil, rueidis.ErrClosing.Error())
	require.NoError(t, locktest.Next(t, held, second).Unlock(locktest.Bounded(t)))
}
