package faults

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// outage is a fault that passes, and during which Redis definitely does nothing of
// what it is asked.
type outage struct {
	name     string
	where    marks
	args     []string // of the server
	client   func(*rueidis.ClientOption)
	begin    func(t *testing.T, s locktest.Topology)
	end      func(t *testing.T, s locktest.Topology)
	cause    string // pattern of the cause's text
	reads    bool   // Redis answers what only reads
	releases bool   // Redis carries out a release
}

func init() {
	for _, o := range outages {
		register(o.name, func(t *testing.T, k locktest.Kind) { testOutage(t, k, o) }, o.where)
	}
}

var outages = []outage{{
	name:   "F19_MaxClients",
	where:  realServers,
	client: func(o *rueidis.ClientOption) { o.ClientSetInfo = rueidis.DisableClientSetInfo },
	begin:  beginMaxClients,
	end:    func(t *testing.T, s locktest.Topology) { s.Do(t, "CONFIG", "SET", "maxclients", "1000") },
	cause:  "max number of clients",
}, {
	name:  "F20_NobodyListens",
	begin: func(_ *testing.T, s locktest.Topology) { s.Kill() },
	end:   func(_ *testing.T, s locktest.Topology) { s.Restart() },
	cause: "dial",
}, {
	name:  "F27_ReadOnly",
	where: realServers | noClusterNode,
	begin: func(t *testing.T, s locktest.Topology) { s.Do(t, "REPLICAOF", "127.0.0.1", "1") },
	end:   func(t *testing.T, s locktest.Topology) { s.Do(t, "REPLICAOF", "NO", "ONE") },
	cause: "READONLY",
	reads: true,
}, {
	name:  "F27_MasterDown",
	where: realServers | noClusterNode,
	args:  []string{"--replica-serve-stale-data", "no"},
	begin: func(t *testing.T, s locktest.Topology) { s.Do(t, "REPLICAOF", "127.0.0.1", "1") },
	end:   func(t *testing.T, s locktest.Topology) { s.Do(t, "REPLICAOF", "NO", "ONE") },
	cause: "MASTERDOWN",
}, {
	name:  "F27_NoReplicas",
	where: realServers,
	begin: func(t *testing.T, s locktest.Topology) { s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "9") },
	end:   func(t *testing.T, s locktest.Topology) { s.Do(t, "CONFIG", "SET", "min-replicas-to-write", "0") },
	cause: "NOREPLICAS",
	reads: true,
}, {
	name:  "F27_Misconf",
	where: realServers,
	begin: beginMisconf,
	end:   func(t *testing.T, s locktest.Topology) { s.Do(t, "CONFIG", "SET", "save", "") },
	cause: "MISCONF",
	reads: true,
}, {
	name:  "F28_Loading",
	where: realServers,
	args: []string{
		"--key-load-delay", "2000", "--enable-debug-command", "local",
		"--rdbcompression", "no", "--loading-process-events-interval-bytes", "1024",
	},
	begin: beginLoading,
	end: func(_ *testing.T, s locktest.Topology) {
		_, _ = s.TryDo("CONFIG", "SET", "key-load-delay", "0") // fails if it has loaded all meanwhile
	},
	cause: "LOADING|CLUSTERDOWN",
}, {
	name:  "F29_Busy",
	where: realServers,
	args:  []string{"--busy-reply-threshold", "20"},
	begin: beginBusy,
	end: func(t *testing.T, s locktest.Topology) {
		s.Do(t, "SCRIPT", "KILL")
		locktest.Await(t, func() bool { // a node still answers BUSY what comes together with the KILL
			return locktest.ErrOf(s.TryDo("PING")) == nil
		})
	},
	cause: "BUSY",
}, {
	name:     "F30_OutOfMemory",
	where:    realServers,
	begin:    func(t *testing.T, s locktest.Topology) { s.Do(t, "CONFIG", "SET", "maxmemory", "1") },
	end:      func(t *testing.T, s locktest.Topology) { s.Do(t, "CONFIG", "SET", "maxmemory", "0") },
	cause:    "OOM",
	reads:    true,
	releases: true,
}}

// beginMaxClients leaves the place of the administrator's connection alone.
func beginMaxClients(t *testing.T, s locktest.Topology) {
	s.Do(t, "CONFIG", "SET", "maxclients", "1")
	s.Do(t, "CLIENT", "KILL", "SKIPME", "yes")
}

// beginMisconf has a snapshot fail: there is no place for its file.
func beginMisconf(t *testing.T, f locktest.Topology) {
	for _, s := range f {
		s.Do(t, "CONFIG", "SET", "save", "3600 1000000")
		require.NoError(t, os.Mkdir(filepath.Join(locktest.Real(s).Dir(), "dump.rdb"), 0o700))
		s.Do(t, "BGSAVE")
		locktest.Await(t, func() bool {
			return strings.Contains(locktest.Text(t, s, "INFO", "persistence"), "rdb_last_bgsave_status:err")
		})
	}
}

// beginLoading restarts Redis with so many keys that it would load for 20 s.
func beginLoading(t *testing.T, s locktest.Topology) {
	s.Do(t, "DEBUG", "POPULATE", "100000")
	s.Do(t, "SAVE")
	s.Restart()
}

// beginBusy runs a script without end, until it is killed.
func beginBusy(t *testing.T, f locktest.Topology) {
	for _, s := range f {
		c := s.Client(t)
		ended := make(chan error, 1)
		go func() {
			ended <- c.Do(context.Background(), c.B().Eval().Script("while true do end").Numkeys(1).Key("k").Build()).Error()
		}()
		t.Cleanup(func() {
			_, _ = s.TryDo("SCRIPT", "KILL") // if the test has failed before it did so
			require.Error(t, <-ended)
		})
		locktest.Await(t, func() bool {
			return locktest.ErrOf(s.TryDo("PING")) != nil
		})
	}
}

func testOutage(t *testing.T, k locktest.Kind, o outage) {
	s := k.Start(t, o.args...)
	var change []func(*rueidis.ClientOption)
	if o.client != nil {
		change = append(change, o.client)
	}
	const most = time.Second // in which at least one call is answered
	patient := k.Open(t, s.Client(t, change...), locktest.Options{Lease: locktest.Long, Unguarded: true})
	hasty := k.Open(t, s.Client(t, change...), locktest.Options{Lease: locktest.Long, MaxOutage: ptr(most), Unguarded: true})
	held := locktest.Lock(t, patient, locktest.Bounded(t), "held")
	o.begin(t, s)

	unavailable := func(call func() (*holdfast.Lease, error)) {
		t.Helper()
		l, err := call()
		for tries := 1; tries < 5 && errors.Is(err, holdfast.ErrUnknown); tries++ { // a starved server does not say in time that it is away
			l, err = call()
		}
		require.Nil(t, l)
		locktest.RequireSentinel(t, err, holdfast.ErrUnavailable)
		require.Regexp(t, o.cause, err.Error())
	}
	for _, l := range []locktest.Locker{patient, hasty} { // the fault may cut the connection first
		locktest.Await(t, func() bool {
			return errors.Is(locktest.ErrOf(l.TryLock(locktest.Bounded(t), "k")), holdfast.ErrUnavailable)
		})
	}
	unavailable(func() (*holdfast.Lease, error) { return patient.TryLock(locktest.Bounded(t), "k") })

	began := time.Now()
	unavailable(func() (*holdfast.Lease, error) { return patient.TryLockFor(locktest.Bounded(t), "k", most) })
	require.GreaterOrEqual(t, time.Since(began), most)

	began = time.Now()
	unavailable(func() (*holdfast.Lease, error) {
		l, err := hasty.Lock(locktest.Bounded(t), "k")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		return l, err
	})
	require.GreaterOrEqual(t, time.Since(began), most)

	unavailable(func() (*holdfast.Lease, error) {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		defer cancel()
		l, err := patient.Lock(ctx, "k")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return l, err
	})

	inspect := func() (*holdfast.Lease, error) {
		return nil, locktest.ErrOf(patient.Inspect(locktest.Bounded(t), "held"))
	}
	if !o.reads {
		unavailable(inspect)
	} else {
		locktest.Await(t, func() bool { // a call that is under way while the client leaves a replica has no answer
			return locktest.ErrOf(inspect()) == nil
		})
	}

	err := held.Unlock(locktest.Over(context.Background()))
	if !o.releases {
		locktest.RequireSentinel(t, err, holdfast.ErrUnknown)
		require.ErrorIs(t, err, context.Canceled)
	} else {
		require.NoError(t, err)
	}
	require.ErrorIs(t, held.Err(), holdfast.ErrReleased)

	waiting := locktest.GoLock(patient, locktest.Bounded(t), "k")
	o.end(t, s)
	require.NoError(t, locktest.Got(t, waiting).Unlock(locktest.Bounded(t)))
	for _, key := range []string{"held", "k"} {
		locktest.Await(t, func() bool { return !locktest.Exists(t, s, key) })
	}
	immortal(t, s)
}

// immortal requires that each lock of ours, and all that belongs to it, has an expiry,
// except the marker of a quorum's node.
func immortal(t testing.TB, s locktest.Topology) {
	t.Helper()
	for _, one := range s {
		for _, pattern := range []string{"k", "held", "holdfast_*", "redisson_*"} {
			for _, k := range locktest.Strings(t, one, "KEYS", pattern) {
				if k != "holdfast_node" {
					require.NotEqual(t, -1, locktest.Number(t, one, "PTTL", k), "%q has no expiry", k)
				}
			}
		}
	}
}
