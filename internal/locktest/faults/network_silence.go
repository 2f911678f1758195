package faults

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() {
	register("F15_LostBySilenceIsUndone", testLostBySilence)
	registerSolo("F35_ManyLostAreUndoneByFew", testManyLost)
}

// linger makes all locks outlive their leases in Redis, as after a renewal of which no answer
// came: only their holder can end them. It is cut off by then, so that nothing sets the expiry
// again.
func (r *harness) linger() {
	const all = "for _, k in ipairs(redis.call('KEYS', 'k*')) do redis.call('PEXPIRE', k, 3600000) end"
	r.Server.Each(func(s Server) { s.Do(r.T, "EVAL", all, "0") })
}

// A lease is lost by silence, and Redis still has it when the network is well again. Its
// holder ends it then, and the next waiter has the key.
func testLostBySilence(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: 6 * time.Second})
	lost := Lock(t, r.Locker, Bounded(t), "k")
	r.Proxy.Refuse(true)
	r.Proxy.Cut()
	r.linger()
	next := GoLock(r.Other, Bounded(t), "k")
	r.AwaitWaiters("k", 1)
	<-lost.Done()
	require.ErrorIs(t, lost.Err(), watchdog.ErrDeadline)
	RequireSentinel(t, lost.Unlock(Bounded(t)), holdfast.ErrLost)
	require.Equal(t, lost.Owner(), r.Owner("k"))
	r.Proxy.Refuse(false)
	require.NoError(t, Got(t, next).Unlock(Bounded(t)))
	r.Tidy("k")
}

// After an outage that cost many leases, few goroutines undo them all.
func testManyLost(t *testing.T, d Kind) {
	const keys = 500
	r := newHarness(t, d, Options{Lease: 10 * time.Second})
	held := make([]*holdfast.Lease, keys)
	locked := make(chan error, keys)
	for i := range keys {
		go func() {
			var err error
			held[i], err = r.Locker.Lock(Bounded(t), fmt.Sprint("k", i))
			locked <- err
		}()
	}
	for range keys {
		require.NoError(t, Within(t, locked))
	}
	r.Proxy.Refuse(true)
	r.Proxy.Cut()
	r.linger()
	for _, l := range held {
		<-l.Done()
	}
	require.Less(t, runtime.NumGoroutine(), keys/2)
	r.Proxy.Refuse(false)
	for i := range keys {
		key := fmt.Sprint("k", i)
		Await(t, func() bool { return !Exists(t, r.Server, key) }, key)
	}
}
