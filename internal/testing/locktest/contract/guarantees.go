package contract

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/names"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// G6: only the owner. G7: nothing is left over. G9: no key delays another.
var guaranteeCases = []testCase{
	{"G6_OnlyTheOwner", servers, locktest.Options{Lease: 30 * time.Second}, g6Strangers},
	{"G7_NothingIsLeftOver", servers | ofOneHolder, locktest.Options{Fencing: true}, g7Nothing},
	{"G9_AKeyOfAWrongTypeInABatch", servers, locktest.Options{Lease: 30 * time.Second}, g9Batch},
	{"G9_AWaiterThatCannotSubscribe", servers | ofOneHolder, locktest.Options{Lease: 30 * time.Second}, g9Waiter},
}

// Owners are compared whole: neither a longer nor a shorter one is ours.
func g6Strangers(c *harness) {
	for name, stranger := range map[string]func(owner string) string{
		"longer":  func(owner string) string { return owner + "0" },
		"shorter": func(owner string) string { return owner[:len(owner)-1] },
	} {
		var leases []*holdfast.Lease
		for _, use := range []string{"renew", "unlock", "enter", "leave"} {
			leases = append(leases, locktest.Lock(c.T, c.Locker, c.ctx, name+use))
		}
		inner := locktest.Lock(c.T, c.Locker, leases[3].Bind(c.ctx), leases[3].Key())
		for _, l := range leases {
			c.Kind.Give(c.T, c.Server, c.Name(l.Key()), stranger(strings.TrimSuffix(l.Owner(), wire.WriteSuffix)), "7")
		}
		dump := func() map[string]string { // without the timeout keys of read/write locks, which their owners remove
			all := c.Dump()
			maps.DeleteFunc(all, func(name, _ string) bool { return strings.Contains(name, names.ReadHolds) })
			return all
		}
		before := dump()
		require.ErrorIs(c.T, leases[1].Unlock(c.ctx), holdfast.ErrLost)
		require.ErrorIs(c.T, locktest.ErrOf(c.Locker.Lock(context.WithoutCancel(leases[2].Bind(c.ctx)), leases[2].Key())), holdfast.ErrLost)
		require.ErrorIs(c.T, inner.Unlock(c.ctx), holdfast.ErrLost)
		c.ended(leases[0], holdfast.ErrLost)
		require.Equal(c.T, before, dump())
		for _, l := range leases {
			require.Equal(c.T, -1, locktest.Number(c.T, c.Server, "PTTL", c.Name(l.Key())))
		}
	}
}

func g7Nothing(c *harness) {
	connections := func() int { return strings.Count(locktest.Text(c.T, c.Server, "CLIENT", "LIST"), "\n") }
	before := connections()
	client := c.Server.Client(c.T, func(o *rueidis.ClientOption) { o.InitAddress = []string{c.Proxy.Addr()} })
	l := c.Kind.Open(c.T, client, locktest.Options{Fencing: true})

	their := locktest.Lock(c.T, c.Other, c.ctx, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	leaving := []<-chan locktest.Acquired{locktest.GoLock(l, ctx, "k"), c.queueWith(ctx, l, "k")}
	c.AwaitWaiters("k", 1)
	cancel()
	for _, w := range leaving {
		require.Error(c.T, (<-w).Err)
	}
	waiting := locktest.GoLock(l, c.ctx, "k")
	c.AwaitWaiters("k", 1)
	held := locktest.Next(c.T, their, waiting)
	c.unlock(locktest.Lock(c.T, l, held.Bind(c.ctx), "k"))
	c.unlock(held)
	c.Proxy.SwallowReply(1, locktest.Is("acquire"))
	c.unlock(locktest.Lock(c.T, l, c.ctx, "unanswered"))
	c.Tidy("k")
	c.Tidy("unanswered")
	keys := c.Keys()
	c.onlyExpiring()

	locktest.Lock(c.T, l, c.ctx, "k")
	require.NoError(c.T, l.Close())
	client.Close()
	c.Tidy("k")
	require.Equal(c.T, len(keys), len(c.Keys()))
	locktest.Await(c.T, func() bool { return connections() <= before })
}

// onlyExpiring requires that Redis has only two counters, the tombstone of an attempt in
// doubt, and the heartbeats of a fair lock.
func (c *harness) onlyExpiring() {
	c.T.Helper()
	names := c.Keys()
	found := map[string]int{}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, ":")
		found[kind]++
	}
	counters := 2
	if c.Kind.Permits {
		counters = 0
	}
	require.Equal(c.T, counters, found["redisson_lock_token"])
	tombstones, heartbeats := found["holdfast_gone"], 0
	if c.Kind.Fair {
		heartbeats = 2
	}
	if c.Kind.Fair || c.Kind.Nodes > 1 {
		require.Positive(c.T, tombstones) // also of an owner that was given up before an answer
	} else {
		require.Equal(c.T, 1, tombstones)
	}
	require.Equal(c.T, heartbeats, found["holdfast_heartbeat"])
	require.Len(c.T, names, counters+tombstones+heartbeats)
}

func g9Batch(c *harness) {
	var leases []*holdfast.Lease
	for i := range 30 {
		leases = append(leases, locktest.Lock(c.T, c.Locker, c.ctx, fmt.Sprintf("k%02d", i)))
	}
	c.Server.Do(c.T, "SET", c.Name("k05"), "not a lock")
	c.Server.Do(c.T, "DEL", c.Name("k15"))
	for _, i := range []int{5, 15} {
		c.ended(leases[i], holdfast.ErrLost)
	}
	before := map[*holdfast.Lease]time.Time{}
	for _, l := range slices.Concat(leases[:5], leases[6:15], leases[16:]) {
		before[l] = l.Deadline()
	}
	for l, deadline := range before {
		locktest.Await(c.T, func() bool { return l.Deadline().After(deadline) })
		c.unlock(l)
	}
}

func g9Waiter(c *harness) {
	locktest.Lock(c.T, c.Other, c.ctx, "theirs")
	l := locktest.Lock(c.T, c.Locker, c.ctx, "mine")
	held, letGo := c.hold(c.Proxy.OnRequest, "subscribe")
	ctx, cancel := context.WithCancel(c.ctx)
	stuck := locktest.GoLock(c.Locker, ctx, "theirs")
	locktest.Within(c.T, held)
	for range 3 {
		locktest.Renewed(c.T, l)
		c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, "another"))
	}
	c.lives(l)
	cancel()
	require.ErrorIs(c.T, (<-stuck).Err, context.Canceled)
	letGo()
	c.unlock(l)
}

// G10: numbers of one key strictly grow.
var fenceCases = []testCase{
	{"G10_NumbersGrow", servers | ofOneHolder | ofLocks, locktest.Options{Fencing: true, Lease: 30 * time.Second, Handover: &longTenure, Unguarded: true}, g10Grow},
	{"G10_OneForEachLease", ofLocks, locktest.Options{Fencing: true, Lease: 30 * time.Second}, g10Lease},
	{"G10_NoneWithoutFencing", anywhere, defaults, g10None},
}

func g10Grow(c *harness) {
	counter := locktest.OfKey("redisson_lock_token", c.Name("k"))
	last := int64(0)
	grown := func(l *holdfast.Lease) *holdfast.Lease {
		c.T.Helper()
		require.Greater(c.T, l.Fence(), last)
		last = l.Fence()
		return l
	}
	handover := func() {
		l := grown(locktest.Lock(c.T, c.Locker, c.ctx, "k"))
		c.unlock(c.serve(l, c.queues(3, "k"), func(_ int, _, next *holdfast.Lease) { grown(next) }))
	}
	lost := func(lose func()) func() {
		return func() {
			if c.Kind.Nodes > 1 { // a node that was late keeps the numbers of a tenure, which are ahead of its clock
				locktest.Await(c.T, func() bool { return micros(c.T, c.Server[0]) > last })
			}
			lose()
		}
	}
	for _, between := range []func(){
		func() {},
		handover,
		func() { handover(); lost(func() { c.Server.Do(c.T, "FLUSHALL") })() },
		lost(func() { c.Server.Do(c.T, "DEL", counter) }),
		lost(func() { c.Server.Do(c.T, "PEXPIRE", counter, "1") }),
		lost(func() { c.Server.Do(c.T, "SET", counter, "41") }), // as Java does
		lost(func() { c.Server.Restart() }),
		func() { // the lease expires
			l := grown(locktest.Lock(c.T, c.Locker, c.ctx, "k", holdfast.FixedLease(100*time.Millisecond)))
			locktest.Await(c.T, func() bool { return !locktest.Exists(c.T, c.Server, c.Name("k")) })
			require.ErrorIs(c.T, l.Unlock(c.ctx), holdfast.ErrLost)
		},
		func() {
			grown(locktest.Lock(c.T, c.Other, c.ctx, "k"))
			c.force(c.Other, "k")
		},
		func() { // the counter is an hour ahead of the clock
			c.Server.Do(c.T, "INCRBY", counter, "3600000000")
			last += 3_600_000_000 - 1
		},
		handover,
	} {
		between()
		for _, locker := range []locktest.Locker{c.Other, c.Locker, c.Other} {
			c.unlock(grown(locktest.Lock(c.T, locker, c.ctx, "k")))
		}
	}
}

// micros is what a server's clock says, in µs.
func micros(t testing.TB, s locktest.Server) int64 {
	t.Helper()
	parts := locktest.Must(s.Do(t, "TIME").AsIntSlice())(t)
	return parts[0]*1_000_000 + parts[1]
}

// Neither an entry nor a renewal changes the fence of a lease.
func g10Lease(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	fence, deadline := l.Fence(), l.Deadline()
	require.NoError(c.T, c.Locker.Do(l.Bind(c.ctx), "k", func(context.Context) error { return nil }))
	locktest.Await(c.T, func() bool { return l.Deadline().After(deadline) })
	inner := locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), "k")
	require.Equal(c.T, []int64{fence, fence}, []int64{l.Fence(), inner.Fence()})
	c.unlock(l)
	c.unlock(inner)
	require.Equal(c.T, fence, l.Fence())
}

func g10None(c *harness) {
	l := locktest.Lock(c.T, c.Locker, c.ctx, "k")
	require.Zero(c.T, l.Fence())
	c.unlock(l)
}
