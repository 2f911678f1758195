package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() {
	register("F15_PartitionByProxy", func(t *testing.T, k locktest.Kind) { testPartition(t, k, false) }, ofOneHolder)
	register("F15_PartitionAfterReset", func(t *testing.T, k locktest.Kind) { testPartition(t, k, true) }, ofOneHolder)
	register("F17_JitterIsSurvived", testJitter)
	register("F15_LostBySilenceIsUndone", testLostBySilence, ofOneHolder)
	register("F35_ManyLostAreUndoneByFew", testManyLost, alone, ofLocks) // a permit ends by its score, whatever the key does
	register("F15_NestedCallsWhileRedisHangs", testNestedWhileHanging)
}

// testPartition stops the traffic of a client's connections in silence, or also ends them, so that
// those that are made anew hang. Every call returns by its own deadline, leases end at theirs,
// before another can have the key, and when the network heals all goes on.
func testPartition(t *testing.T, k locktest.Kind, reset bool) {
	lease := k.Limit() / 2
	const soon = 40 * time.Second // generous for a call, and less than the time limits of sockets and dials
	s := k.Start(t)
	p := s.Behind(t)
	locker := k.Open(t, s.Client(t, func(o *rueidis.ClientOption) {
		o.InitAddress = []string{p.Addr()}
		o.Dialer.Timeout, o.ConnWriteTimeout = 2*soon, 2*soon
	}), locktest.Options{Lease: lease, MaxOutage: ptr(lease)})
	other := k.Open(t, s.Client(t), locktest.Options{Lease: locktest.Long})
	held := locktest.Lock(t, locker, locktest.Bounded(t), "held")
	wanted := locktest.Lock(t, other, locktest.Bounded(t), "wanted")
	waiting := locktest.GoLock(locker, locktest.Bounded(t), "wanted")
	locktest.Await(t, func() bool { return k.Waiting(t, s, "wanted") == 1 })
	left := locktest.Lock(t, locker, locktest.Bounded(t), "left")
	p.HoldRequests(true)
	p.HoldReplies(true)
	if reset {
		p.Cut()
	}

	err := left.Unlock(locktest.Over(context.Background()))
	locktest.RequireSentinel(t, err, holdfast.ErrUnknown)
	require.ErrorIs(t, err, context.Canceled)

	rival := locktest.Lock(t, other, locktest.Bounded(t), "held")
	require.ErrorIs(t, held.Err(), holdfast.ErrLost)
	<-held.Done()
	require.ErrorIs(t, held.Err(), watchdog.ErrDeadline)
	require.False(t, time.Now().Before(held.Deadline()))
	locktest.RequireSentinel(t, held.Unlock(locktest.Bounded(t)), holdfast.ErrLost)

	began := time.Now()
	quick := func(err error) {
		t.Helper()
		require.True(t, errors.Is(err, holdfast.ErrUnknown) || errors.Is(err, holdfast.ErrUnavailable), err)
		require.Less(t, time.Since(began), soon)
		began = time.Now()
	}
	everyCall(locker, t.Context(), "free", quick) // a wait, until the longest outage
	ctx, cancel := context.WithTimeout(context.Background(), lease/5)
	defer cancel()
	_, err = locker.Lock(ctx, "free")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	quick(err)
	require.NoError(t, rival.Unlock(locktest.Bounded(t)))
	a := <-waiting
	require.Nil(t, a.Lease)
	require.True(t, errors.Is(a.Err, holdfast.ErrUnknown) || errors.Is(a.Err, holdfast.ErrUnavailable), a.Err)

	p.HoldRequests(false)
	p.HoldReplies(false)
	require.NoError(t, wanted.Unlock(locktest.Bounded(t)))
	require.NoError(t, locktest.Retry(t, locker, "wanted").Unlock(locktest.Bounded(t)))
	for _, key := range []string{"held", "left", "wanted", "free"} {
		locktest.Await(t, func() bool { return !locktest.Exists(t, s, key) }, key)
	}
	immortal(t, s)
}

// Leases live through delays of 1 to 500 ms for a round trip, and a key goes from
// hand to hand.
func testJitter(t *testing.T, k locktest.Kind) {
	const lease = 30 * time.Second
	r := newHarness(t, k, locktest.Options{Lease: lease})
	r.Proxy.OnRequest(func([]string) redistest.Verdict {
		r.Proxy.SetDelay(time.Duration(rand.Int64N(int64(250*time.Millisecond))), time.Duration(rand.Int64N(int64(250*time.Millisecond))))
		return redistest.Pass
	})
	held, waits := make([]*holdfast.Lease, 20), make([]<-chan locktest.Acquired, 20)
	for i := range held {
		waits[i] = locktest.GoLock(r.Locker, locktest.Bounded(t), fmt.Sprint("key", i))
	}
	for i := range held {
		held[i] = locktest.Got(t, waits[i])
	}
	now := time.Now()
	for _, l := range held { // each is renewed
		locktest.Await(t, func() bool { return l.Deadline().After(now.Add(lease)) })
		require.NoError(t, l.Err())
	}
	for i, l := range held {
		next := locktest.GoLock(r.Other, locktest.Bounded(t), fmt.Sprint("key", i))
		r.passesOn(l, next)
	}
}

// linger makes all locks outlive their leases in Redis, as after a renewal of which no answer
// came: only their holder can end them. It is cut off by then, so that nothing sets the expiry
// again.
func (r *harness) linger() {
	const all = "for _, k in ipairs(redis.call('KEYS', 'k*')) do redis.call('PEXPIRE', k, 3600000) end"
	r.Server.Each(func(s locktest.Server) { s.Do(r.T, "EVAL", all, "0") })
}

// A lease is lost by silence, and Redis still has it when the network is well again. Its
// holder ends it then, and the next waiter has the key.
func testLostBySilence(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: 6 * time.Second})
	lost := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k")
	r.cutOff()
	r.linger()
	next := locktest.GoLock(r.Other, locktest.Bounded(t), "k")
	r.AwaitWaiters("k", 1)
	<-lost.Done()
	require.ErrorIs(t, lost.Err(), watchdog.ErrDeadline)
	locktest.RequireSentinel(t, lost.Unlock(locktest.Bounded(t)), holdfast.ErrLost)
	require.Equal(t, lost.Owner(), r.Owner("k"))
	r.Proxy.Refuse(false)
	require.NoError(t, locktest.Got(t, next).Unlock(locktest.Bounded(t)))
	r.Tidy("k")
}

// After an outage that cost many leases, few goroutines undo them all.
func testManyLost(t *testing.T, k locktest.Kind) {
	const keys = 500
	r := newHarness(t, k, locktest.Options{Lease: 10 * time.Second})
	held := make([]*holdfast.Lease, keys)
	locked := make(chan error, keys)
	for i := range keys {
		go func() {
			var err error
			held[i], err = r.Locker.Lock(locktest.Bounded(t), fmt.Sprint("k", i))
			locked <- err
		}()
	}
	for range keys {
		require.NoError(t, locktest.Within(t, locked))
	}
	r.cutOff()
	r.linger()
	for _, l := range held {
		<-l.Done()
	}
	locktest.Await(t, func() bool { return runtime.NumGoroutine() < keys/2 }) // those that tell of the end are gone
	r.Proxy.Refuse(false)
	for i := range keys {
		key := fmt.Sprint("k", i)
		locktest.Await(t, func() bool { return !locktest.Exists(t, r.Server, key) }, key)
	}
}

// A nested call whose outcome is not known is being settled for as long as Redis
// hangs. Those that come after it do not wait so long; what they did is settled when
// Redis goes on.
func testNestedWhileHanging(t *testing.T, k locktest.Kind) {
	const lease = 3 * time.Second // of which a call takes a third
	r := newHarness(t, k, locktest.Options{Lease: lease, MaxOutage: ptr(time.Second)})
	outer := locktest.Lock(t, r.Locker, locktest.Bounded(t), "k", holdfast.FixedLease(time.Hour))
	ctx := outer.Bind(context.Background())
	inner, inmost := locktest.Lock(t, r.Locker, ctx, "k"), locktest.Lock(t, r.Locker, ctx, "k")
	require.Equal(t, 3, r.Entries("k"))

	r.Server.Pause()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := r.Locker.Lock(short, "k")
	locktest.RequireSentinel(t, err, holdfast.ErrUnknown)
	ends := make(chan error)
	for _, call := range []struct {
		want error
		make func() error
	}{
		{holdfast.ErrUnknown, func() error { return inner.Unlock(locktest.Over(context.Background())) }},
		{holdfast.ErrUnavailable, func() error { return locktest.ErrOf(r.Locker.TryLock(ctx, "k")) }},
		{holdfast.ErrUnavailable, func() error { return locktest.ErrOf(r.Locker.Lock(ctx, "k")) }},
		{holdfast.ErrUnavailable, func() error { return locktest.ErrOf(r.Locker.TryLockFor(ctx, "k", time.Hour)) }},
	} {
		go func() { ends <- call.make() }()
		locktest.RequireSentinel(t, locktest.Within(t, ends), call.want)
	}
	require.NoError(t, outer.Err())
	r.Server.Resume()
	locktest.Await(t, func() bool { return r.Entries("k") == 2 })
	another := (*holdfast.Lease)(nil)
	locktest.Await(t, func() bool { // a real server, or its machine, may stand still for longer than a call takes
		another, err = r.Locker.Lock(ctx, "k")
		return err == nil || k.Virtual
	})
	require.NoError(t, err)
	require.NoError(t, another.Unlock(locktest.Bounded(t)))
	require.NoError(t, inmost.Unlock(locktest.Bounded(t)))
	r.passesOn(outer)
}
