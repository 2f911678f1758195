package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() {
	register("F15_PartitionByFirewall", testPartitionByFirewall).real = true
	register("F15_PartitionByProxy", func(t *testing.T, d Kind) { testPartitionByProxy(t, d, false) })
	register("F15_PartitionAfterReset", func(t *testing.T, d Kind) { testPartitionByProxy(t, d, true) })
	register("F17_ValidityShrinksByTheRoundTrip", testSlow)
	register("F17_JitterIsSurvived", testJitter)
	register("F19_MaxClientsOnADefaultClient", testMaxClientsDefault).real = true
	register("F19_PoolExhausted", testPoolExhausted)
	register("F19_RenewalsDoNotQueueBehindAcquires", testRenewalsAmongAcquires)
}

// testPartitionByFirewall has the kernel drop every packet from and to an address
// of this machine that only this test uses.
func testPartitionByFirewall(t *testing.T, d Kind) {
	address := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	rule := func(does, side string) error {
		return exec.Command("iptables", "-w", "10", does, "INPUT", side, address, "-j", "DROP").Run()
	}
	if rule("-A", "-d") != nil || rule("-D", "-d") != nil {
		t.Skip("the firewall of this machine is not ours to change; F15_PartitionByProxy shows nearly the same")
	}
	s := d.Start(t, "--bind", "127.0.0.1", address)
	var addresses []string
	for _, one := range s {
		_, port, err := net.SplitHostPort(one.Addr())
		require.NoError(t, err)
		addresses = append(addresses, net.JoinHostPort(address, port))
	}
	dropping := false
	drop := func(on bool) {
		if on == dropping {
			return
		}
		dropping = on
		does := map[bool]string{true: "-A", false: "-D"}[on]
		require.NoError(t, rule(does, "-d"))
		require.NoError(t, rule(does, "-s"))
	}
	t.Cleanup(func() { drop(false) })
	testPartition(t, d, s, strings.Join(addresses, ","), drop)
}

// testPartitionByProxy stops the traffic of the connections there are, or also
// ends them, so that those that are made anew hang.
func testPartitionByProxy(t *testing.T, d Kind, reset bool) {
	s := d.Start(t)
	p := s.Behind(t)
	testPartition(t, d, s, p.Addr(), func(on bool) {
		p.HoldRequests(on)
		p.HoldReplies(on)
		if on && reset {
			p.Cut()
		}
	})
}

// soon is generous for a call with a lease of a second, and less than the
// time limits of sockets and dials in testPartition.
const soon = 20 * time.Second

// testPartition cuts a client off in silence. Every call returns by its own
// deadline, leases end at theirs, before another can have the key, and when the
// network heals all goes on.
func testPartition(t *testing.T, d Kind, s Topology, address string, cut func(on bool)) {
	const lease = time.Second
	client := func(o *rueidis.ClientOption) {
		o.InitAddress = []string{address}
		o.Dialer.Timeout, o.ConnWriteTimeout = 2*soon, 2*soon
	}
	locker := d.Open(t, s.Client(t, client), Options{Lease: lease, MaxOutage: ptr(lease)})
	other := d.Open(t, s.Client(t), Options{Lease: Long})
	held := Lock(t, locker, Bounded(t), "held")
	wanted := Lock(t, other, Bounded(t), "wanted")
	waiting := GoLock(locker, Bounded(t), "wanted")
	Await(t, func() bool { return d.Waiting(t, s, "wanted") == 1 })
	left := Lock(t, locker, Bounded(t), "left")
	cut(true)

	err := left.Unlock(over())
	RequireSentinel(t, err, holdfast.ErrUnknown)
	require.ErrorIs(t, err, context.Canceled)

	taken := GoLock(other, Bounded(t), "held")
	rival := Got(t, taken)
	require.ErrorIs(t, held.Err(), holdfast.ErrLost)
	<-held.Done()
	require.ErrorIs(t, held.Err(), watchdog.ErrDeadline)
	require.False(t, time.Now().Before(held.Deadline()))
	RequireSentinel(t, held.Unlock(Bounded(t)), holdfast.ErrLost)

	quick := func(call func() error) {
		t.Helper()
		began := time.Now()
		err := call()
		require.Error(t, err)
		require.True(t, errors.Is(err, holdfast.ErrUnknown) || errors.Is(err, holdfast.ErrUnavailable), err)
		require.Less(t, time.Since(began), soon)
	}
	quick(func() error { _, err := locker.TryLock(Bounded(t), "free"); return err })
	quick(func() error { _, err := locker.TryLockFor(Bounded(t), "free", lease); return err })
	quick(func() error { _, err := locker.Lock(Bounded(t), "free"); return err }) // until the longest outage
	quick(func() error { _, err := locker.Inspect(Bounded(t), "free"); return err })
	quick(func() error { _, err := locker.ForceUnlock(Bounded(t), "free"); return err })
	quick(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), lease/5)
		defer cancel()
		_, err := locker.Lock(ctx, "free")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return err
	})
	require.NoError(t, rival.Unlock(Bounded(t)))
	a := <-waiting
	require.Nil(t, a.Lease)
	require.True(t, errors.Is(a.Err, holdfast.ErrUnknown) || errors.Is(a.Err, holdfast.ErrUnavailable), a.Err)

	cut(false)
	require.NoError(t, wanted.Unlock(Bounded(t)))
	Await(t, func() bool {
		l, err := locker.TryLock(Bounded(t), "wanted")
		return err == nil && l.Unlock(Bounded(t)) == nil
	})
	for _, key := range []string{"held", "left", "wanted", "free"} {
		Await(t, func() bool { return !Exists(t, s, key) }, key)
	}
	immortal(t, s)
}

// What a round trip took is not promised to the holder.
func testSlow(t *testing.T, d Kind) {
	const way = 100 * time.Millisecond
	lease := 6 * time.Second
	if d.Nodes > 0 { // which waits for a node no longer than a tenth of it
		lease = 10 * time.Second
	}
	r := newHarness(t, d, Options{Lease: lease})
	r.Proxy.SetDelay(way, way)
	began := time.Now()
	l := Lock(t, r.Locker, Bounded(t), "k")
	returned := time.Now()
	require.GreaterOrEqual(t, returned.Sub(began), 2*way)
	most := lease - watchdog.Margin(lease)
	require.LessOrEqual(t, l.Deadline().Sub(returned), most-2*way)
	require.GreaterOrEqual(t, l.Deadline().Sub(began), most)

	until := l.Deadline() // and likewise for a renewal
	Await(t, func() bool { return l.Deadline().After(until) })
	require.LessOrEqual(t, time.Until(l.Deadline()), most-2*way)
	require.NoError(t, l.Unlock(Bounded(t)))
}

// Leases live through delays of 1 to 500 ms for a round trip, and a key goes from
// hand to hand.
func testJitter(t *testing.T, d Kind) {
	lease := 10 * time.Second
	if d.Nodes > 0 { // as above
		lease = 15 * time.Second
	}
	r := newHarness(t, d, Options{Lease: lease})
	r.Proxy.OnRequest(func([]string) redistest.Verdict {
		r.Proxy.SetDelay(time.Duration(rand.Int64N(int64(250*time.Millisecond))), time.Duration(rand.Int64N(int64(250*time.Millisecond))))
		return redistest.Pass
	})
	held, waits := make([]*holdfast.Lease, 20), make([]<-chan Acquired, 20)
	for i := range held {
		waits[i] = GoLock(r.Locker, Bounded(t), fmt.Sprint("key", i))
	}
	for i := range held {
		held[i] = Got(t, waits[i])
	}
	now := time.Now()
	for _, l := range held { // each is renewed
		Await(t, func() bool { return l.Deadline().After(now.Add(lease)) })
		require.NoError(t, l.Err())
	}
	for i, l := range held {
		next := GoLock(r.Other, Bounded(t), fmt.Sprint("key", i))
		require.NoError(t, l.Unlock(Bounded(t)))
		require.NoError(t, Got(t, next).Unlock(Bounded(t)))
	}
}
