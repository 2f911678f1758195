package faults

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/watchdog"
)

func init() {
	register("F35_AllAwayRefused", func(t *testing.T, d Kind) {
		// An acquire and a release, the scripts anew for those that come first, renewals on a slow machine.
		r := newHarness(t, d, awayOptions())
		testAllAway(r, r.Other, r.Server.Kill, r.Server.Restart, 10)
	})
	register("F35_AllAwaySilent", func(t *testing.T, d Kind) {
		// What was asked meanwhile lies in the sockets: an attempt for each time limit, and what undoes it.
		r := newHarness(t, d, awayOptions())
		testAllAway(r, r.Other, r.Server.Pause, r.Server.Resume, 25)
	})
	register("F35_AllAwayReset", func(t *testing.T, d Kind) {
		// A proxy takes connections for a Redis that is gone: no attempt is known to have failed.
		r := newHarness(t, d, awayOptions())
		testAllAway(r, r.Locker, r.Server.Kill, r.Server.Restart, 15)
	})
}

// awayOptions have a lease that is renewed in time even on a slow machine; several
// nodes answer within a tenth of it or not at all.
func awayOptions() Options {
	const lease = 4 * time.Second
	return Options{Lease: lease, MaxOutage: ptr(Long), MaxLease: lease}
}

// testAllAway has Redis be away for longer than the leases of many holders, while
// others wait for the same keys: all holders are told at their deadlines, all
// waiters are served when it is back, and the calls of the first second are at
// most so many for each key: there is no stampede.
func testAllAway(r *harness, waiter holdfast.Locker, leave, comeBack func(), most int) {
	t := r.T
	keys := 200
	if r.Kind.Nodes > 1 {
		keys = 100 // on each node
	}
	holder := r.Kind.Open(t, r.Server.Client(t), awayOptions())
	key := func(i int) string { return fmt.Sprint("key", i) }
	held, waits := make([]*holdfast.Lease, keys), make([]chan error, keys)
	for i := range keys {
		held[i] = Lock(t, holder, Bounded(t), key(i))
	}
	for i := range keys {
		waits[i] = make(chan error, 1)
		go func() {
			l, err := waiter.Lock(Bounded(t), key(i))
			if err == nil {
				err = l.Unlock(Bounded(t))
			}
			waits[i] <- err
		}()
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
		RequireSentinel(t, l.Unlock(Bounded(t)), holdfast.ErrLost)
	}
	time.Sleep(time.Second)

	comeBack()
	second := time.After(time.Second)
	for _, w := range waits {
		require.NoError(t, <-w)
	}
	<-second
	sent := scriptCalls(t, r.Server)
	require.GreaterOrEqual(t, sent, 2*keys/50) // a quorum takes and releases up to 50 keys with one call
	require.LessOrEqual(t, sent, most*keys)
}

// scriptCalls is how many scripts Redis was asked for since it was started or its
// statistics were reset: of several nodes, the least that a quorum was asked for, as
// one that is found back late has missed some.
func scriptCalls(t *testing.T, s Topology) int {
	var all []int
	for _, one := range s {
		m := one.Do(t, "INFO", "commandstats")
		text, err := m.ToString()
		require.NoError(t, err)
		sum := 0
		for _, calls := range regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`).FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(calls[1])
			require.NoError(t, err)
			sum += n
		}
		all = append(all, sum)
	}
	return SeenByMost(all)
}
