package faults

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// One endpoint of a cluster, with a client that takes it for a server: it refuses calls for
// keys of several slots.

func init() {
	register("F37_LeasesBehindOneEndpoint", testLeasesBehindOneEndpoint, oneRedis|realServers)
	register("F37_ManyCallsBehindOneEndpoint", testManyCallsBehindOneEndpoint, oneRedis|realServers)
	register("F37_NoQuorumBehindOneEndpoint", testNoQuorumBehindOneEndpoint, quorumOnly|realServers)
	register("F37_WaitersBehindOneEndpoint", testWaitersBehindOneEndpoint, fairOnly|oneRedis|realServers)
	register("F26_NodeOfAClusterThatSendsElsewhere", testSentElsewhere, realServers)
}

// endpoints are servers each of which has these slots of a cluster, and knows the owners of the others.
func endpoints(t *testing.T, k locktest.Kind, slots, others string) (f locktest.Topology) {
	for range max(k.Nodes, 1) {
		f = append(f, redistest.Start(t, redistest.ClusterNode(t, slots, others)...))
	}
	f.Each(func(s locktest.Server) { locktest.Real(s).AwaitClusterNode(t) })
	return f
}

// endpoint is one server that has all slots, with two lockers.
func endpoint(t *testing.T, k locktest.Kind, o locktest.Options) (s *redistest.Server, locker, other locktest.Locker) {
	f := endpoints(t, k, allSlots, "")
	return locktest.Real(f[0]), k.Open(t, f.Client(t, single), o), k.Open(t, f.Client(t, single), o)
}

const allSlots = "0-16383"

func single(o *rueidis.ClientOption) { o.ForceSingleClient = true }

// crossings is how often a server has refused a call for keys of several slots.
func crossings(t *testing.T, s *redistest.Server) (n int) {
	for line := range strings.Lines(locktest.Text(t, s, "INFO", "errorstats")) {
		_, _ = fmt.Sscanf(line, "errorstat_CROSSSLOT:count=%d", &n)
	}
	return n
}

// All leases of a locker are renewed, from the first renewal on.
func testLeasesBehindOneEndpoint(t *testing.T, k locktest.Kind) {
	s, locker, other := endpoint(t, k, locktest.Options{Lease: 30 * time.Second, Fencing: true})
	var leases []*holdfast.Lease
	for _, key := range manyKeys() {
		leases = append(leases, locktest.Lock(t, locker, locktest.Bounded(t), key))
	}
	first := leases[len(leases)-1].Deadline()
	for _, l := range leases {
		locktest.Await(t, func() bool { return l.Err() != nil || l.Deadline().After(first) }, l.Key())
	}
	require.Less(t, crossings(t, s), 10, "the server is asked as before")
	for _, l := range leases {
		require.NoError(t, l.Unlock(locktest.Bounded(t)))
		require.NoError(t, locktest.Lock(t, other, locktest.Bounded(t), l.Key()).Unlock(locktest.Bounded(t)))
	}
}

// Calls that are made at once are made, whether they are refused together or not, and no
// longer together once they were.
func testManyCallsBehindOneEndpoint(t *testing.T, k locktest.Kind) {
	s, locker, _ := endpoint(t, k, locktest.Options{Lease: locktest.Long})
	lockAll := func() {
		var all sync.WaitGroup
		for _, key := range manyKeys() {
			all.Go(func() {
				for range 20 {
					if err := locktest.Cycle(locker, locktest.Bounded(t), key); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}
	lockAll()
	before := crossings(t, s)
	require.Less(t, before, 30, "calls go on together")
	lockAll()
	require.Equal(t, before, crossings(t, s))
	for _, key := range manyKeys() {
		require.False(t, locktest.Exists(t, s, key))
	}
}

// No quorum locks there, as its marker is in a slot of its own: an attempt and a wait are
// refused immediately.
func testNoQuorumBehindOneEndpoint(t *testing.T, k locktest.Kind) {
	f := endpoints(t, k, allSlots, "")
	for _, unguarded := range []bool{false, true} {
		l := k.Open(t, f.Client(t, single), locktest.Options{Lease: locktest.Long, Unguarded: unguarded})
		for _, wait := range []time.Duration{0, locktest.Long} {
			_, err := l.TryLockFor(locktest.Bounded(t), "k", wait)
			locktest.RequireSentinel(t, err, nil, "node of a Redis Cluster")
			require.ErrorContains(t, err, "CROSSSLOT")
		}
	}
	locktest.Gone(t, f, k.Prefix+"k")
}

// All waiters of a locker keep their places by heartbeats, and are served.
func testWaitersBehindOneEndpoint(t *testing.T, k locktest.Kind) {
	s, locker, other := endpoint(t, k, locktest.Options{Lease: locktest.Long, WaiterTTL: time.Second, GrantLease: locktest.Long})
	held, waits := queuedFor(t, s, locker, other, manyKeys())
	var alive []int // until when, in ms
	for _, key := range manyKeys() {
		alive = append(alive, aliveUntil(t, s, key))
	}
	for i, key := range manyKeys() {
		locktest.Await(t, func() bool { return len(waits[i]) > 0 || aliveUntil(t, s, key) > alive[i]+1000 }, key)
	}
	require.Less(t, crossings(t, s), 10, "the server is asked as before")
	served(t, held, waits)
}

// aliveUntil is the time, in ms, until which a client counts as alive that waits for a key.
func aliveUntil(t *testing.T, s *redistest.Server, key string) (until int) {
	for _, v := range locktest.Strings(t, s, "HVALS", locktest.OfKey("holdfast_heartbeat", key)) {
		ms, _ := strconv.Atoi(v) // others are labels
		until = max(until, ms)
	}
	return until
}

// A client that does not follow is sent elsewhere by a node of a Cluster, each time it
// asks: no wait cures that.
func testSentElsewhere(t *testing.T, k locktest.Kind) {
	f := endpoints(t, k, "5961", "0-5960 5962-16383") // each has the slot of the marker, so that it is a node of a quorum
	locker := k.Open(t, f.Client(t, single), locktest.Options{Lease: locktest.Long})
	everyCall(locker, locktest.Bounded(t), "k", func(err error) {
		t.Helper()
		locktest.RequireSentinel(t, err, nil)
		require.Regexp(t, "MOVED|CROSSSLOT", err.Error()) // a call may also have the marker, which is in another slot
	})
}
