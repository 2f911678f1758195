// Package sentinel has the cases that need a Sentinel set, in which one master takes over
// from another.
package sentinel

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Run runs every case against k, in long tests only.
func Run(t *testing.T, k locktest.Kind) {
	locktest.InTestAll(t)
	t.Parallel()
	t.Run("F25_F27_MasterKilled", func(t *testing.T) { testFailover(t, k, (*redistest.Sentinel).KillMaster) })
	t.Run("F25_F27_FailoverByCommand", func(t *testing.T) { testFailover(t, k, (*redistest.Sentinel).Failover) })
	t.Run("F25_MasterHangs", func(t *testing.T) { testHangs(t, k) })
	t.Run("F25_LastWriteLost", func(t *testing.T) { testLastWriteLost(t, k, (*redistest.Sentinel).KillMaster) })
	t.Run("F25_LastWriteLostByCommand", func(t *testing.T) { testLastWriteLost(t, k, (*redistest.Sentinel).Failover) })
	t.Run("F35_ManyWaiters", func(t *testing.T) { testManyWaiters(t, k) })
	t.Run("F27_MissedSwitch", func(t *testing.T) { testMissedSwitch(t, k) })
	if !k.Permits && !k.ReadWrite { // it makes locks by hand
		t.Run("F25_Locks", func(t *testing.T) { testLocks(t, k) })
	}
}

// prompt is longer than a wake-up takes on a slow machine, and much shorter than a lease:
// what comes so soon has not waited for the end of one.
const prompt = 20 * time.Second

// lease is more than twice as long as the longest failover for which tests wait.
const lease = 100 * time.Second

// open opens a locker for which a failover is no outage.
func open(t *testing.T, k locktest.Kind, client rueidis.Client) locktest.Locker {
	t.Helper()
	outage := locktest.Long
	return k.Open(t, client, locktest.Options{Lease: lease, Fencing: true, MaxOutage: &outage})
}

// often has a client ask the Sentinels at times. While a master is dead, a client of rueidis
// v1.0.79 that has asked once asks them again and again, so not sooner than a failover takes.
func often(o *rueidis.ClientOption) { o.Sentinel.TopologyRefreshInterval = 5 * time.Second }

// replicated returns when both replicas have all that the master has.
func replicated(t *testing.T, s *redistest.Sentinel) {
	t.Helper()
	s.AwaitMaster(t, nil).Do(t, "SET", "last", "v") // WAIT is for the writes of its own connection
	locktest.Await(t, func() bool { return locktest.Number(t, s.AwaitMaster(t, nil), "WAIT", "2", "5000") == 2 })
}

// unlocks unlocks l, and returns the lease of the waiter that this wakes.
func unlocks(t *testing.T, k locktest.Kind, l *holdfast.Lease, waiter <-chan locktest.Acquired) *holdfast.Lease {
	t.Helper()
	began := time.Now()
	require.NoError(t, l.Unlock(locktest.Bounded(t)))
	next := locktest.Got(t, waiter)
	require.Less(t, time.Since(began), prompt, "the waiter was not woken")
	k.Grown(t, l.Fence(), next.Fence())
	return next
}

// Holds that replicas have survive a failover: holders go on, and waiters are woken by
// them. No call outlasts its deadline meanwhile.
func testFailover(t *testing.T, k locktest.Kind, begin func(*redistest.Sentinel) *redistest.Server) {
	s := redistest.StartSentinel(t)
	holder, other := open(t, k, s.Client(t, often)), open(t, k, s.Client(t, often))
	var held []*holdfast.Lease
	var waiters []<-chan locktest.Acquired
	for i := range 20 {
		key := fmt.Sprint("key:", i)
		held = append(held, locktest.Lock(t, holder, locktest.Bounded(t), key))
		waiters = append(waiters, locktest.GoLock(other, locktest.Bounded(t), key))
		locktest.Await(t, func() bool { return k.Waiting(t, s.AwaitMaster(t, nil), key) == 1 })
	}
	replicated(t, s)
	over := make(chan struct{})
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				began := time.Now()
				l, err := other.Lock(ctx, fmt.Sprint("short:", i))
				if took := time.Since(began); took > prompt {
					t.Errorf("a call with 200 ms took %v: %v", took, err)
				}
				if err == nil {
					_ = l.Unlock(ctx)
				}
				cancel()
			}
		})
	}
	old := begin(s)
	s.AwaitMaster(t, old)
	switched := time.Now()
	for _, l := range held {
		locktest.Await(t, func() bool { return l.Deadline().Add(-lease).After(switched) || l.Err() != nil })
		require.NoError(t, l.Err())
	}
	close(over)
	callers.Wait()
	for i, l := range held {
		require.NoError(t, unlocks(t, k, l, waiters[i]).Unlock(locktest.Bounded(t)))
	}
}

// What is under way to a master that hangs is not given up when another takes its place,
// although the client closes the connection then.
func testHangs(t *testing.T, k locktest.Kind) {
	s := redistest.StartSentinel(t)
	locker, other := open(t, k, s.Client(t, often)), open(t, k, s.Client(t, often))
	var held []*holdfast.Lease
	for i := range 20 {
		held = append(held, locktest.Lock(t, locker, locktest.Bounded(t), fmt.Sprint("key:", i)))
	}
	replicated(t, s)
	old := s.AwaitMaster(t, nil)
	old.Pause()
	var unlocked []<-chan error
	var locked []<-chan locktest.Acquired
	for i, l := range held {
		done := locktest.Go(func() error { return l.Unlock(locktest.Bounded(t)) })
		unlocked = append(unlocked, done)
		locked = append(locked, locktest.GoLock(locker, locktest.Bounded(t), fmt.Sprint("free:", i)))
	}
	s.AwaitMaster(t, old)
	for i := range held {
		require.NoError(t, locktest.Within(t, unlocked[i]))
		require.NoError(t, locktest.Got(t, locked[i]).Unlock(locktest.Bounded(t)))
		require.NoError(t, locktest.Lock(t, other, locktest.Bounded(t), held[i].Key()).Unlock(locktest.Bounded(t)))
	}
	old.Resume()
}

// A holder whose hold no replica had is told by its next renewal. The key goes to a waiter,
// whose fence is larger than the one that was forgotten.
func testLastWriteLost(t *testing.T, k locktest.Kind, begin func(*redistest.Sentinel) *redistest.Server) {
	s := redistest.StartSentinel(t)
	holder, other := open(t, k, s.Client(t, often)), open(t, k, s.Client(t, often))
	before := locktest.Lock(t, other, locktest.Bounded(t), "k")
	require.NoError(t, before.Unlock(locktest.Bounded(t)))
	replicated(t, s)
	s.HoldReplication(t, true)
	l := locktest.Lock(t, holder, locktest.Bounded(t), "k")
	waiter := locktest.GoLock(other, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return k.Waiting(t, s.AwaitMaster(t, nil), "k") == 1 })
	s.AwaitMaster(t, begin(s))
	switched := time.Now()
	next := locktest.Got(t, waiter)
	require.Less(t, time.Since(switched), 2*prompt)
	k.Grown(t, l.Fence(), next.Fence())
	k.Grown(t, before.Fence(), l.Fence())
	locktest.Within(t, l.Done())
	require.ErrorIs(t, l.Err(), watchdog.ErrNotOurs)
	require.Less(t, time.Since(switched), lease/3+prompt)
	locktest.RequireSentinel(t, l.Unlock(locktest.Bounded(t)), holdfast.ErrLost)
	require.NoError(t, next.Unlock(locktest.Bounded(t)))
}

// The next master knows no holds of many keys, each of which has a waiter: all are served, and
// the calls are at most so many for each key, and one more in each second. There is no stampede.
func testManyWaiters(t *testing.T, k locktest.Kind) {
	const keys, most = 100, 10
	s := redistest.StartSentinel(t)
	holder, other := open(t, k, s.Client(t, often)), open(t, k, s.Client(t, often))
	key := func(i int) string { return fmt.Sprint("key:", i) }
	replicated(t, s)
	s.HoldReplication(t, true)
	var waits []<-chan locktest.Acquired
	for i := range keys {
		locktest.Lock(t, holder, locktest.Bounded(t), key(i))
		waits = append(waits, locktest.GoLock(other, locktest.Bounded(t), key(i)))
	}
	for i := range keys {
		locktest.Await(t, func() bool { return k.Waiting(t, s.AwaitMaster(t, nil), key(i)) == 1 })
	}
	master := s.AwaitMaster(t, s.KillMaster())
	began, second := time.Now(), time.After(time.Second)
	for _, w := range waits {
		require.NoError(t, locktest.Got(t, w).Unlock(locktest.Bounded(t)))
	}
	<-second
	sent := locktest.ScriptCalls(t, locktest.Topology{master})
	require.GreaterOrEqual(t, sent, 2) // waiters share calls
	require.LessOrEqual(t, sent, (most+int(time.Since(began)/time.Second))*keys)
}

// A client that missed the switch stays on the old master, which refuses it as a replica,
// until the client asks the Sentinels. Its waiters ride that out, and are woken afterwards.
func testMissedSwitch(t *testing.T, k locktest.Kind) {
	redistest.NeedRedis7(t, "the old master is a replica only after up to 20 s")
	s := redistest.StartSentinel(t)
	m := &missing{sentinels: s.Sentinels()}
	late, other := open(t, k, s.Client(t, m.change)), open(t, k, s.Client(t, often))
	held := locktest.Lock(t, other, locktest.Bounded(t), "held")
	woken := locktest.GoLock(late, locktest.Bounded(t), "held")
	locktest.Await(t, func() bool { return k.Waiting(t, s.AwaitMaster(t, nil), "held") == 1 })
	replicated(t, s)
	m.late.Lock()
	answer := sync.OnceFunc(m.late.Unlock)
	defer answer()
	old := s.Failover()
	master := s.AwaitMaster(t, old)
	var err error
	locktest.Await(t, func() bool {
		l, e := late.TryLock(locktest.Bounded(t), "refused")
		if e == nil { // the old master took it
			_ = l.Unlock(locktest.Bounded(t))
		}
		err = e
		return e != nil && strings.Contains(e.Error(), "READONLY")
	}, "the old master is none: %v", &err)
	locktest.RequireSentinel(t, err, holdfast.ErrUnavailable)
	waiter := locktest.GoLock(late, locktest.Bounded(t), "free")
	answer()
	require.NoError(t, locktest.Got(t, waiter).Unlock(locktest.Bounded(t)))

	locktest.Await(t, func() bool {
		return k.Waiting(t, master, "held") == 1 && (!k.Fair || locktest.Listeners(t, master, locktest.InboxOf("held", locktest.Queued(t, master, "held")[0])) == 1)
	}, "it listens to the old master")
	require.NoError(t, unlocks(t, k, held, woken).Unlock(locktest.Bounded(t)))
	l := locktest.Lock(t, other, locktest.Bounded(t), "k")
	waiter = locktest.GoLock(late, locktest.Bounded(t), "k")
	locktest.Await(t, func() bool { return k.Waiting(t, master, "k") == 1 })
	require.NoError(t, unlocks(t, k, l, waiter).Unlock(locktest.Bounded(t)))
}

// missing makes a client miss what Sentinels say of a switch. While late is locked it gets
// no answers either.
type missing struct {
	sentinels []*redistest.Server
	late      sync.RWMutex
}

func (m *missing) change(o *rueidis.ClientOption) {
	locktest.Dialled(o, func(c net.Conn) net.Conn {
		if slices.ContainsFunc(m.sentinels, func(s *redistest.Server) bool { return s.Addr() == c.RemoteAddr().String() }) {
			return missingConn{c, m}
		}
		return c
	})
}

type missingConn struct {
	net.Conn
	m *missing
}

// Read renames the channel of messages of a switch.
func (c missingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.m.late.RLock()
	defer c.m.late.RUnlock()
	copy(p, bytes.ReplaceAll(p[:n], []byte("+switch-master\r\n$"), []byte("-switch-master\r\n$")))
	return n, err
}
