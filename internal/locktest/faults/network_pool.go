package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

// A client that says its name to a Redis which has no room for it is cut off
// before it reads why: unknown rather than unavailable.
func testMaxClientsDefault(t *testing.T, d Kind) {
	const most = 300 * time.Millisecond
	s := d.Start(t)
	locker := d.Open(t, s.Client(t), Options{Lease: Long, MaxOutage: ptr(most)})
	require.NoError(t, Lock(t, locker, Bounded(t), "k").Unlock(Bounded(t)))
	beginMaxClients(t, s)
	failed := func(_ *holdfast.Lease, err error) {
		t.Helper()
		require.True(t, errors.Is(err, holdfast.ErrUnknown) || errors.Is(err, holdfast.ErrUnavailable), err)
	}
	began := time.Now()
	failed(locker.TryLock(Bounded(t), "k"))
	failed(locker.TryLockFor(Bounded(t), "k", most/2))
	require.GreaterOrEqual(t, time.Since(began), most/2)
	failed(locker.Lock(Bounded(t), "k"))
	s.Do(t, "CONFIG", "SET", "maxclients", "1000")
	if d.Nodes > 0 { // which has to find its nodes back
		Await(t, func() bool {
			l, err := locker.TryLock(Bounded(t), "k")
			return err == nil && l.Unlock(Bounded(t)) == nil
		})
	}
	require.NoError(t, Lock(t, locker, Bounded(t), "k").Unlock(Bounded(t)))
	Await(t, func() bool { return !Exists(t, s, "k") })
	immortal(t, s)
}

// The user has taken all dedicated connections of the client: none is left for
// messages. Waits end by their deadline, and find a release by looking.
func testPoolExhausted(t *testing.T, d Kind) {
	const lease = 9 * time.Second
	s := d.Start(t)
	client := s.Client(t, func(o *rueidis.ClientOption) { o.BlockingPoolSize = 1 })
	locker := d.Open(t, client, Options{Lease: lease})
	other := d.Open(t, s.Client(t), Options{Lease: lease})
	require.NoError(t, Lock(t, locker, Bounded(t), "warm").Unlock(Bounded(t))) // a quorum looks at its nodes on such a connection
	for _, one := range Clients(client) {
		taken, giveBack := one.Dedicate()
		defer giveBack()
		require.NoError(t, taken.Do(Bounded(t), taken.B().Ping().Build()).Error())
	}

	held := Lock(t, other, Bounded(t), "k")
	began := time.Now()
	_, err := locker.TryLockFor(Bounded(t), "k", 100*time.Millisecond)
	RequireSentinel(t, err, holdfast.ErrNotAcquired)
	require.Less(t, time.Since(began), 20*time.Second)
	waiting := GoLock(locker, Bounded(t), "k")
	require.NoError(t, held.Unlock(Bounded(t)))
	require.NoError(t, Got(t, waiting).Unlock(Bounded(t)))
	require.NoError(t, locker.Close())
}

// Many goroutines acquire all the time over a slow network; a lease on the same
// client is renewed in time.
func testRenewalsAmongAcquires(t *testing.T, d Kind) {
	lease, acquirers := 10*time.Second, 50
	if d.Nodes > 0 { // of which each is asked as often, within a tenth of the lease
		lease, acquirers = 15*time.Second, 20
	}
	r := newHarness(t, d, Options{Lease: lease})
	r.Proxy.SetDelay(50*time.Millisecond, 50*time.Millisecond)
	l := Lock(t, r.Locker, Bounded(t), "held")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var workers sync.WaitGroup
	for i := range acquirers {
		workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if got, err := r.Locker.TryLock(ctx, fmt.Sprintf("key%d-%d", i, n)); err == nil {
					_ = got.Unlock(ctx)
				}
			}
		})
	}
	for range 2 {
		until := l.Deadline()
		Await(t, func() bool { return l.Deadline().After(until) })
	}
	require.NoError(t, l.Err())
	stop()
	workers.Wait()
	require.NoError(t, l.Unlock(Bounded(t)))
}
