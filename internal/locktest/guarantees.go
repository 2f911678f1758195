package locktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

// G6: only the owner. G7: nothing is left over. G9: no key delays another.
var guaranteeCases = []contractCase{
	{"G6_OnlyTheOwner", Options{Lease: time.Second}, g6Strangers},
	{"G7_NothingIsLeftOver", Options{Fencing: true}, g7Nothing},
	{"G9_AKeyOfAWrongTypeInABatch", Options{Lease: 2 * time.Second}, g9Batch},
	{"G9_AWaiterThatCannotSubscribe", Options{Lease: 2 * time.Second}, g9Waiter},
}

// Owners are compared whole: neither a longer nor a shorter one is ours.
func g6Strangers(c *contractRig) {
	for name, stranger := range map[string]func(owner string) string{
		"longer":  func(owner string) string { return owner + "0" },
		"shorter": func(owner string) string { return owner[:len(owner)-1] },
	} {
		var leases []*holdfast.Lease
		for _, use := range []string{"renew", "unlock", "enter", "leave"} {
			leases = append(leases, lock(c.t, c.locker, c.ctx, name+use))
		}
		inner := lock(c.t, c.locker, leases[3].Bind(c.ctx), leases[3].Key())
		for _, l := range leases {
			give(c.t, c.server, l.Key(), stranger(l.Owner()), "7")
		}
		before := c.dump()
		require.ErrorIs(c.t, leases[1].Unlock(c.ctx), holdfast.ErrLost)
		_, err := c.locker.Lock(context.WithoutCancel(leases[2].Bind(c.ctx)), leases[2].Key())
		require.ErrorIs(c.t, err, holdfast.ErrLost)
		require.ErrorIs(c.t, inner.Unlock(c.ctx), holdfast.ErrLost)
		c.ended(leases[0], holdfast.ErrLost)
		require.Equal(c.t, before, c.dump())
		for _, l := range leases {
			require.Equal(c.t, -1, number(c.t, c.server, "PTTL", l.Key()))
		}
	}
}

func g7Nothing(c *contractRig) {
	connections := func() int {
		m := c.server.Do(c.t, "CLIENT", "LIST")
		list, err := m.ToString()
		require.NoError(c.t, err)
		return strings.Count(list, "\n")
	}
	before := connections()
	client := c.server.Client(c.t, func(o *rueidis.ClientOption) { o.InitAddress = []string{c.proxy.Addr()} })
	l := c.kind.Open(c.t, client, Options{Fencing: true})

	their := lock(c.t, c.other, c.ctx, "k")
	ctx, cancel := context.WithCancel(c.ctx)
	leaving := []<-chan acquired{lockAside(l, ctx, "k"), c.queueWith(ctx, l, "k")}
	c.awaitWaiters("k", 1)
	cancel()
	for _, w := range leaving {
		require.Error(c.t, (<-w).err)
	}
	waiting := lockAside(l, c.ctx, "k")
	c.awaitWaiters("k", 1)
	c.unlock(their)
	held := got(c.t, waiting)
	c.unlock(lock(c.t, l, held.Bind(c.ctx), "k"))
	c.unlock(held)
	c.proxy.SwallowReply(1, is("acquire"))
	c.unlock(lock(c.t, l, c.ctx, "unanswered"))
	c.tidy("k")
	c.tidy("unanswered")
	keys := c.keys()
	c.onlyExpiring()

	lock(c.t, l, c.ctx, "k")
	require.NoError(c.t, l.Close())
	client.Close()
	c.tidy("k")
	require.Equal(c.t, len(keys), len(c.keys()))
	await(c.t, func() bool { return connections() <= before })
}

// onlyExpiring requires that there is nothing in Redis but two counters, the
// tombstone of an attempt in doubt, and the heartbeats of a fair lock.
func (c *contractRig) onlyExpiring() {
	c.t.Helper()
	names := c.keys()
	found := map[string]int{}
	for _, name := range names {
		kind, _, _ := strings.Cut(name, ":")
		found[kind]++
	}
	require.Equal(c.t, 2, found["redisson_lock_token"])
	tombstones, heartbeats := found["holdfast_gone"], 0
	if c.kind.Fair {
		heartbeats = 2
	}
	if c.kind.Fair || c.kind.Nodes > 1 {
		require.Positive(c.t, tombstones) // who was given up before its enter, or a node, was answered leaves one, too
	} else {
		require.Equal(c.t, 1, tombstones)
	}
	require.Equal(c.t, heartbeats, found["holdfast_heartbeat"])
	require.Len(c.t, names, 2+tombstones+heartbeats)
}

func g9Batch(c *contractRig) {
	var leases []*holdfast.Lease
	for i := range 30 {
		leases = append(leases, lock(c.t, c.locker, c.ctx, fmt.Sprintf("k%02d", i)))
	}
	c.server.Do(c.t, "SET", "k05", "not a lock")
	c.server.Do(c.t, "DEL", "k15")
	for _, i := range []int{5, 15} {
		c.ended(leases[i], holdfast.ErrLost)
	}
	before := map[*holdfast.Lease]time.Time{}
	for _, l := range slices.Concat(leases[:5], leases[6:15], leases[16:]) {
		before[l] = l.Deadline()
	}
	for l, deadline := range before {
		await(c.t, func() bool { return l.Deadline().After(deadline) })
		c.unlock(l)
	}
}

func g9Waiter(c *contractRig) {
	lock(c.t, c.other, c.ctx, "theirs")
	l := lock(c.t, c.locker, c.ctx, "mine")
	hook, held := holding("subscribe")
	c.proxy.OnRequest(hook)
	ctx, cancel := context.WithCancel(c.ctx)
	stuck := lockAside(c.locker, ctx, "theirs")
	within(c.t, held)
	for range 3 {
		before := l.Deadline()
		await(c.t, func() bool { return l.Deadline().After(before) })
		c.unlock(lock(c.t, c.locker, c.ctx, "another"))
	}
	c.lives(l)
	cancel()
	require.ErrorIs(c.t, (<-stuck).err, context.Canceled)
	c.proxy.OnRequest(nil)
	c.proxy.Release()
	c.unlock(l)
}
