// Package cluster has the cases about several masters of a Redis Cluster. What one of them can
// show, the suites of contracts and faults show on it.
package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Run runs every case against k, in long tests only.
func Run(t *testing.T, k locktest.Kind) {
	locktest.InTestAll(t)
	t.Parallel()
	t.Run("G9_AMasterThatHangs", func(t *testing.T) { testHangs(t, k, 300) })
	t.Run("F15_AnswersOfOtherMasters", func(t *testing.T) { testOthersAnswer(t, k) })
	t.Run("F13_F26_Changes", func(t *testing.T) { testChanges(t, k) })
	t.Run("F25_Replicas", func(t *testing.T) { testReplicas(t, k) })
	if !k.Permits && !k.ReadWrite { // it makes locks by hand
		t.Run("Locks", func(t *testing.T) { testLocks(t, k) })
		t.Run("F26_ReplicasOfADeadMaster", func(t *testing.T) { testReplicasOfADeadMaster(t, k) })
	}
}

// RunMany runs what takes thousands of keys to be seen.
func RunMany(t *testing.T, k locktest.Kind) {
	locktest.InTestAll(t)
	t.Parallel()
	testHangs(t, k, 5000) // more than one loop renews, or keeps waiting, or Close releases at a time
}

// spread are keys over all slots.
func spread(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint("key:", i))
	}
	return keys
}

// each calls do for all keys, some at once.
func each(keys []string, do func(key string)) {
	var all sync.WaitGroup
	places := make(chan struct{}, 100)
	for _, key := range keys {
		places <- struct{}{}
		all.Go(func() {
			do(key)
			<-places
		})
	}
	all.Wait()
}

// While one master hangs, keys of the others are renewed, released, handed on and taken,
// their waiters keep their places, and Close releases them.
func testHangs(t *testing.T, k locktest.Kind, many int) {
	c := redistest.StartCluster(t, 3, 0, "--cluster-node-timeout", "60000")
	const lease = 30 * time.Second
	o := locktest.Options{Lease: lease, WaiterTTL: lease, GrantLease: lease}
	client := c.Client(t)
	holder, other, closes := k.Open(t, client, o), k.Open(t, c.Client(t), o), k.Open(t, client, locktest.Options{Lease: locktest.Long})
	requireShared(t, c, closes)
	hung := c.Owner(t, "{hung}")
	ctx, cancel := context.WithTimeout(t.Context(), 5*locktest.Patience)
	defer cancel()
	var there, elsewhere []*holdfast.Lease
	for _, key := range spread(100) {
		if key = "{" + key + "}:"; c.Owner(t, key) != hung {
			elsewhere = append(elsewhere, locktest.Lock(t, holder, locktest.Bounded(t), key))
			locktest.Lock(t, closes, locktest.Bounded(t), key+" own")
		}
	}
	var mu sync.Mutex
	each(spread(many), func(key string) {
		l, err := holder.Lock(locktest.Bounded(t), "{hung}"+key)
		if !assert.NoError(t, err) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		there = append(there, l)
		assert.NoError(t, locktest.ErrOf(closes.Lock(locktest.Bounded(t), "{hung} own"+key)))
	})
	wanted := there
	if k.ReadWrite { // each waiter asks Redis once a second
		wanted = there[:min(len(there), 200)]
	}
	var waiters []<-chan locktest.Acquired
	for _, l := range slices.Concat(elsewhere, wanted) {
		waiters = append(waiters, locktest.GoLock(other, ctx, l.Key()))
	}
	at := map[string]*redistest.Server{}
	for _, l := range elsewhere {
		at[l.Key()] = c.Owner(t, l.Key())
		locktest.Await(t, func() bool { return k.Waiting(t, at[l.Key()], l.Key()) == 1 })
	}
	for i := 0; i < len(wanted); i += 50 { // the others' waiters have come at the same time
		locktest.Await(t, func() bool { return k.Waiting(t, hung, wanted[i].Key()) == 1 })
	}
	hung.Pause()
	ends := map[string]int{}
	for _, l := range elsewhere {
		if k.Fair {
			ends[l.Key()] = waiterEnds(t, at[l.Key()], l.Key())
		}
	}
	for _, l := range there {
		<-l.Done()
	}
	over := time.Now()
	for key, end := range ends {
		locktest.Await(t, func() bool { return waiterEnds(t, at[key], key) > end }, "no heartbeat of a waiter")
	}
	for i, l := range elsewhere {
		require.NoError(t, l.Err(), l.Key())
		require.True(t, l.Deadline().After(over), l.Key())
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
		require.NoError(t, locktest.Got(t, waiters[i]).Unlock(locktest.Bounded(t)))
	}
	require.ErrorIs(t, closes.Close(), holdfast.ErrUnknown)
	for _, l := range elsewhere {
		require.False(t, locktest.Exists(t, at[l.Key()], l.Key()+" own"))
	}
	hung.Resume()
}

// requireShared requires that each of the masters carries an even part of what l calls for keys over
// all slots, and is asked for no key of another.
func requireShared(t *testing.T, c *redistest.Cluster, l locktest.Locker) {
	const keys = 300
	each(spread(keys), func(key string) {
		lease, err := l.Lock(locktest.Bounded(t), key)
		if assert.NoError(t, err) {
			assert.NoError(t, lease.Unlock(locktest.Bounded(t)))
		}
	})
	masters := c.Masters(t)
	for _, s := range masters {
		calls := locktest.Stat(t, s, "commandstats", "cmdstat_evalsha:calls=")
		even := 2 * keys / len(masters)
		require.Greater(t, calls, even*9/10)
		require.Less(t, calls, even*2) // a slow machine has some repeated
		require.NotContains(t, locktest.Text(t, s, "INFO", "errorstats"), "MOVED")
	}
}

// A client that cannot connect to one master, as it hangs, has just been answered by another.
// Its calls end by their deadlines all the same, and not when rueidis gives up the dial.
func testOthersAnswer(t *testing.T, k locktest.Kind) {
	c := redistest.StartCluster(t, 2, 0, "--cluster-node-timeout", "60000")
	hung, key := c.Owner(t, "hung"), "answers"
	for c.Owner(t, key) == hung {
		key += "."
	}
	l := k.Open(t, c.Client(t, func(o *rueidis.ClientOption) { o.Dialer.Timeout = locktest.Patience }), locktest.Options{Lease: locktest.Long})
	require.NoError(t, locktest.Cycle(l, locktest.Bounded(t), "hung"))
	hung.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
	hung.Pause()
	defer hung.Resume()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for answered := true; answered; {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			lease, err := l.Lock(ctx, key)
			cancel()
			answered = assert.NoError(t, err) && assert.NoError(t, lease.Unlock(locktest.Bounded(t)))
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	time.Sleep(100 * time.Millisecond) // its own last answer counts no longer
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		_, err := l.TryLock(ctx, "hung")
		cancel()
		require.Error(t, err)
		require.Less(t, time.Since(began), 20*time.Second) // rueidis gives up this dial after a minute
	}
	close(stop)
	<-done
}

// waiterEnds returns when the one client that waits for a key in a queue counts as dead, in milliseconds since 1970.
func waiterEnds(t *testing.T, s *redistest.Server, key string) (ends int) {
	all := locktest.Must(s.Do(t, "HGETALL", locktest.OfKey("holdfast_heartbeat", key)).AsStrMap())(t)
	maps.DeleteFunc(all, func(field, _ string) bool { return strings.HasPrefix(field, "label ") })
	require.Len(t, all, 1)
	for _, ms := range all {
		ends = locktest.Must(strconv.Atoi(ms))(t)
	}
	return ends
}

// holds checks that no key has two holders.
type holds struct {
	mu       sync.Mutex
	now      map[string]*holdfast.Lease // guarded by mu
	overlaps []string                   // guarded by mu
}

func (h *holds) add(l *holdfast.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before := h.now[l.Key()]; before != nil && before.Err() == nil && l.Err() == nil {
		h.overlaps = append(h.overlaps, l.Key())
	}
	h.now[l.Key()] = l
}

// Keys over all slots are held and wanted while slots move, a replica takes the place of
// its master, and a master dies. Every waiter is served, and no two hold a key. Leases whose
// holds do not survive are reported lost.
func testChanges(t *testing.T, k locktest.Kind) {
	c := redistest.StartCluster(t, 3, 1)
	keys := spread(1000)
	o := locktest.Options{Lease: 6 * time.Second, WaiterTTL: 3 * time.Second, GrantLease: 4 * time.Second}
	fresh := func(c *rueidis.ClientOption) { c.ClusterOption.ShardsRefreshInterval = time.Second }
	first, second := k.Open(t, c.Client(t, fresh), o), k.Open(t, c.Client(t, fresh), o)
	h := holds{now: map[string]*holdfast.Lease{}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*locktest.Patience)
	defer cancel()
	each(keys, func(key string) {
		if l, err := first.Lock(ctx, key); assert.NoError(t, err) {
			h.add(l)
		}
	})
	var waits sync.WaitGroup
	var served atomic.Int64
	for _, key := range keys {
		waits.Go(func() {
			l, err := second.Lock(ctx, key)
			for err != nil && ctx.Err() == nil { // a failover may outlast what a wait bears
				l, err = second.Lock(ctx, key)
			}
			if assert.NoError(t, err) {
				h.add(l)
				served.Add(1)
			}
		})
	}
	masters := c.Masters(t)
	moved := 0
	for _, key := range keys { // keys of the first master move to the second
		if moved < 40 && c.Owner(t, key) == masters[0] {
			c.Migrate(t, c.Slot(t, key), masters[1])
			moved++
		}
	}
	c.Failover(t, masters[1])
	var lost atomic.Int64
	release := func(keys []string) {
		each(keys, func(key string) {
			h.mu.Lock()
			l := h.now[key]
			h.mu.Unlock()
			if err := l.Unlock(ctx); err != nil {
				lost.Add(1)
			}
		})
	}
	release(keys[:len(keys)/2])
	masters[2].Kill()
	c.AwaitPromoted(t, masters[2])
	release(keys[len(keys)/2:])
	waits.Wait()
	require.EqualValues(t, len(keys), served.Load())
	require.Empty(t, h.overlaps)
	t.Logf("%d of %d unlocks failed", lost.Load(), len(keys))
}

// Writes are confirmed by the replicas of the node that has the key's slot, also after the
// slot has moved and after a failover.
func testReplicas(t *testing.T, k locktest.Kind) {
	c := redistest.StartCluster(t, 2, 1)
	l := k.Open(t, c.Client(t), locktest.Options{Lease: locktest.Long, Replicas: 1, ReplicaTimeout: time.Second})
	const key = "k"
	cycle := func() {
		t.Helper()
		lease := locktest.Lock(t, l, locktest.Bounded(t), key)
		require.NoError(t, lease.Unlock(locktest.Bounded(t)))
	}
	cycle()
	from := c.Owner(t, key)
	for _, to := range c.Masters(t) {
		if to != from {
			c.Migrate(t, c.Slot(t, key), to)
		}
	}
	cycle()
	c.Failover(t, c.Owner(t, key))
	cycle()
}

// A locker that has never waited, and whose calls go out on connections of their own, finds the new master.
func testReplicasOfADeadMaster(t *testing.T, k locktest.Kind) {
	c := redistest.StartCluster(t, 3, 2)
	l := k.Open(t, c.Client(t), locktest.Options{Lease: locktest.Long, Replicas: 1, ReplicaTimeout: time.Second})
	lease := locktest.Retry(t, l, "{k}1")
	master := c.Owner(t, "{k}1")
	master.Kill()
	c.AwaitPromoted(t, master)
	var another *holdfast.Lease
	locktest.Await(t, func() bool {
		var err error
		another, err = l.TryLock(locktest.Bounded(t), "{k}2")
		return err == nil
	})
	require.NoError(t, another.Unlock(locktest.Bounded(t)))
	require.NoError(t, lease.Unlock(locktest.Bounded(t)))
}
