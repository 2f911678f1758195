package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() {
	register("F35_AllAwayRefused", func(t *testing.T, k locktest.Kind) {
		// An acquire and a release, the scripts anew for those that come first, renewals on a slow machine.
		r := newHarness(t, k, awayOptions())
		testAllAway(r, r.Other, r.Server.Kill, r.Server.Restart, 10)
	}, ofOneHolder)
	register("F35_AllAwaySilent", func(t *testing.T, k locktest.Kind) {
		// What was asked meanwhile lies in the sockets: an attempt for each time limit, and what undoes it.
		r := newHarness(t, k, awayOptions())
		testAllAway(r, r.Other, r.Server.Pause, r.Server.Resume, 25)
	}, ofOneHolder)
	register("F35_AllAwayReset", func(t *testing.T, k locktest.Kind) {
		// A proxy takes connections for a Redis that is gone: no attempt is known to have failed.
		r := newHarness(t, k, awayOptions())
		testAllAway(r, r.Locker, r.Server.Kill, r.Server.Restart, 15)
	}, ofOneHolder)
	register("F35_ServedAtOnce", testServedAtOnce, ofOneHolder)
	register("F35_AnswersButServesNobody", testServesNobody)
}

// awayOptions have a lease that is renewed in time even on a slow machine; nodes of a quorum
// answer within a tenth of it or not at all.
func awayOptions() locktest.Options {
	const lease = 12 * time.Second
	return locktest.Options{Lease: lease, MaxOutage: ptr(locktest.Long), MaxLease: lease}
}

// testAllAway has Redis be away for longer than the leases of many holders, while
// others wait for the same keys: all holders are told at their deadlines, all
// waiters are served when it is back, and the calls of the first second are at
// most so many for each key: there is no stampede.
func testAllAway(r *harness, waiter locktest.Locker, leave, comeBack func(), most int) {
	t := r.T
	keys := 200
	if r.Kind.Nodes > 1 {
		keys = 100 // on each node
	}
	holder := r.Kind.Open(t, r.Server.Client(t), awayOptions())
	key := func(i int) string { return fmt.Sprint("key", i) }
	held, waits := make([]*holdfast.Lease, keys), make([]<-chan error, keys)
	for i := range keys {
		held[i] = locktest.Lock(t, holder, locktest.Bounded(t), key(i))
	}
	for i := range keys {
		waits[i] = locktest.Go(func() error { return locktest.Cycle(waiter, locktest.Bounded(t), key(i)) })
	}
	for i := range keys {
		r.AwaitWaiters(key(i), 1)
	}
	r.Server.Do(t, "CONFIG", "RESETSTAT")
	leave()
	for _, l := range held {
		<-l.Done()
		require.False(t, time.Now().Before(l.Deadline()))
		require.ErrorIs(t, l.Err(), watchdog.ErrDeadline)
		locktest.RequireSentinel(t, l.Unlock(locktest.Bounded(t)), holdfast.ErrLost)
	}
	time.Sleep(time.Second) // of which the length of pauses may be seen

	comeBack()
	second := time.After(time.Second)
	for _, w := range waits {
		require.NoError(t, <-w)
	}
	<-second
	sent := locktest.ScriptCalls(t, r.Server)
	require.GreaterOrEqual(t, sent, 2*keys/50) // a quorum takes and releases up to 50 keys with one call
	r.requireCalm(sent, most*keys)
}

// requireCalm requires that at most so many calls were sent. A real server, or its machine, may stand still,
// so that calls are repeated: there, only a stampede is told from that.
func (r *harness) requireCalm(sent, most int) {
	r.T.Helper()
	if !r.Kind.Virtual {
		most *= 5
	}
	require.LessOrEqual(r.T, sent, most)
}

// Waiters are served as soon as Redis is back, whether they waited before or came while it
// was away. By then their own attempts are half a second apart, or more, which only virtual time tells
// from a server that is slow.
func testServedAtOnce(t *testing.T, k locktest.Kind) {
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, MaxOutage: ptr(locktest.Long)})
	var took time.Duration
	for range 3 { // the machine may stand still
		if took = r.servedAfter(40); took < k.Limit()*3/10 {
			return
		}
	}
	require.FailNow(t, "three quarters of the waiters were served after", took)
}

// servedAfter cuts waiters of many keys off for some seconds. It returns how long three
// quarters of them then waited for the keys, which are free by then.
func (r *harness) servedAfter(keys int) time.Duration {
	t := r.T
	key := func(i int) string { return fmt.Sprint("key", i) }
	served := make(chan time.Time, keys)
	wait := func(i int) {
		l, err := r.Locker.Lock(locktest.Bounded(t), key(i))
		served <- time.Now()
		if err == nil {
			err = l.Unlock(locktest.Bounded(t))
		}
		if err != nil {
			t.Error(err)
		}
	}
	var held []*holdfast.Lease
	for i := range keys / 2 {
		held = append(held, locktest.Lock(t, r.Other, locktest.Bounded(t), key(i)))
		go wait(i)
		r.AwaitWaiters(key(i), 1)
	}
	r.cutOff()
	for i := keys / 2; i < keys; i++ {
		go wait(i)
	}
	for _, l := range held {
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
	}
	time.Sleep(3 * time.Second) // the outage
	back := time.Now()
	r.Proxy.Refuse(false)
	var took time.Duration
	for i := range keys {
		if at := locktest.Within(t, served); i == keys*3/4 {
			took = at.Sub(back)
		}
	}
	for i := range keys {
		r.Tidy(key(i))
	}
	return took
}

// A Redis that answers, and serves nobody, is asked by each waiter ever more rarely.
func testServesNobody(t *testing.T, k locktest.Kind) {
	const keys, most = 20, 15
	r := newHarness(t, k, locktest.Options{Lease: locktest.Long, MaxOutage: ptr(locktest.Long)})
	r.Server.Do(t, "CONFIG", "SET", "maxmemory", "1")
	r.Server.Do(t, "CONFIG", "RESETSTAT")
	var waits []<-chan locktest.Acquired
	for i := range keys {
		waits = append(waits, locktest.GoLock(r.Locker, locktest.Bounded(t), fmt.Sprint("key", i)))
	}
	time.Sleep(time.Second) // no more calls than that in a second
	sent := locktest.ScriptCalls(t, r.Server)
	require.Greater(t, sent, 0)
	r.requireCalm(sent, most*keys)
	r.Server.Do(t, "CONFIG", "SET", "maxmemory", "0")
	for _, w := range waits {
		require.NoError(t, locktest.Got(t, w).Unlock(locktest.Bounded(t)))
	}
}
