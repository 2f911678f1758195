// Package locktest is what the suites for all lock kinds share: how a kind is shown to
// them, the servers that it locks on, with proxies before them, and processes that can
// be killed. The suites are in its folders:
//
//	contract   a case for each sentence of the public docs and each guarantee (G1…)
//	faults     a case for each fault (F1…)
//	exclusion  campaigns on one server, a Sentinel set and a Redis Cluster, and the
//	           checks of what they record: two holders, the order of fences
//	chaos      campaigns on a quorum of nodes that fail
//	cluster    what takes a Redis Cluster of several masters
//	sentinel   failovers of a Sentinel set
//
// For tests only.
package locktest

import (
	"cmp"
	"log/slog"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
)

// Kind is a lock kind, as the suite sees it: an adapter of a few lines in the tests of each
// lock kind.
type Kind struct {
	// Name is the package's name.
	Name string
	// Fair says that waiters stand in a queue in Redis and are granted the key in
	// its order; else they listen to the key's channel and race for it.
	Fair bool
	// Permits says that it is a semaphore with one permit for each key, and so has no fences.
	Permits bool
	// ReadWrite says that keys are read/write locks, of which the locker is one half: writers,
	// or with Shared readers.
	ReadWrite, Shared bool
	// Readers, of a locker of writers, is its other half; nil: there are none.
	Readers func(Locker) holdfast.Locker
	// Nodes is of how many independent masters a quorum is made that locks keys; 0:
	// one Redis does.
	Nodes int
	// Prefix stands before every key in Redis.
	Prefix string
	// Cluster says that the one Redis is a master of a Redis Cluster that has others.
	Cluster bool
	// Sentinels watch the one Redis, which has two replicas then; nil: none do.
	Sentinels redistest.Sentinels
	Virtual   bool         // cases run in virtual time
	network   *sim.Network // of the case that runs; nil: it runs on real servers
	// Masters is a Redis Cluster that the cases share, each with a prefix of its own; nil: they
	// have servers of their own.
	Masters *redistest.Cluster
	// New makes a locker on the Redis of client; it is closed by the test.
	New func(client rueidis.Client, o Options) (Locker, error)
	// Another, of a kind without servers, makes another locker in the memory of one. New
	// takes no notice of the client then.
	Another func(Locker) Locker
}

// Locker is that of a kind.
type Locker = sim.Locker

// Place is where a suite runs a kind: it is one of the next methods.
type Place = func(*testing.T) Kind

// InRealTime is the kind as it is.
func (k Kind) InRealTime(*testing.T) Kind { return k }

// InVirtualTime is the kind in virtual time. Where the environment says which Redis to test,
// that one is tested.
func (k Kind) InVirtualTime(*testing.T) Kind { k.Virtual = !ServersChosen(); return k }

// Prefixed is the kind with a prefix, in virtual time.
func (k Kind) Prefixed(t *testing.T) Kind {
	WithoutRace(t)
	k.Prefix = "lock:"
	return k.InVirtualTime(t)
}

// OnCluster and OnSentinels are the kind on a Redis Cluster of three masters and three replicas,
// one of which has all keys of a case, and on a Sentinel set, for the long tests only.
func (k Kind) OnCluster(t *testing.T) Kind { InTestAll(t); k.Cluster = true; return k }

func (k Kind) OnSentinels(t *testing.T) Kind {
	InTestAll(t)
	k.Sentinels = redistest.StartSentinels(t)
	return k
}

// OnMasters is the kind on a Redis Cluster of three masters and three replicas, with keys over
// all slots, for the long tests only.
func (k Kind) OnMasters(t *testing.T) Kind {
	InTestAll(t)
	k.Cluster, k.Masters = true, redistest.StartCluster(t, 3, 3, "--cluster-node-timeout", "60000") // no master is replaced
	return k
}

// Limit is for a wait that has to end by it, and not before servers have answered: a real one, or
// its machine, may stand still for seconds.
func (k Kind) Limit() time.Duration {
	if k.Virtual {
		return time.Second
	}
	return Patience / 3
}

// Part runs a part of a case as a test of its own, beside others.
func (k Kind) Part(t *testing.T, name string, run func(t *testing.T, k Kind)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		k.Try(t, run)
	})
}

// Try runs a case: in virtual time in a bubble of its own, with a network of its own.
func (k Kind) Try(t *testing.T, run func(t *testing.T, k Kind)) {
	if !k.Virtual {
		run(t, k)
		return
	}
	synctest.Test(t, func(t *testing.T) {
		k.network = &sim.Network{Trip: 20 * time.Microsecond}
		run(t, k)
	})
}

// InTestAll skips the test under -short.
func InTestAll(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-all runs it")
	}
}

// InTestServers skips the test unless the environment says which Redis to test.
func InTestServers(t *testing.T) {
	if !ServersChosen() {
		t.Skip("make test-servers runs it")
	}
}

// ServersChosen reports whether the environment says which Redis to test, as make test-servers does.
func ServersChosen() bool { return os.Getenv("REDIS_SERVER") != "" }

// WithoutRace skips the test under the race detector, which finds all races in others of the same
// code.
func WithoutRace(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("make test runs it, without the race detector")
	}
}

// oneSlot are the keys whose names share a slot of a Redis Cluster.
var oneSlot = regexp.MustCompile(`(?s)^([^{}]*|[^{]*\{[^}]+\}.*)$`)

// Accepts reports whether keys may be so; else calls fail with an error that says "hash tag".
func (k Kind) Accepts(key string) bool { return !k.Cluster || oneSlot.MatchString(k.Prefix+key) }

// Options are those of a lock kind's New; nil and zero fields keep the default.
type Options struct {
	Prefix     string // set by Open
	Label      string
	Lease      time.Duration
	Handover   *time.Duration
	Fencing    bool
	MaxHold    time.Duration
	MaxWaiters int
	MaxOutage  *time.Duration
	Logger     *slog.Logger
	Observer   *holdfast.Observer
	// Of one Redis only; quorums take no notice.
	Replicas       int
	ReplicaTimeout time.Duration
	// Of fair locks only; others take no notice.
	WaiterTTL  time.Duration
	GrantLease time.Duration
	Confirmed  bool // grants are confirmed
	// Of quorums only; others take no notice.
	MaxLease  time.Duration // longest lease: how long a node that has forgotten has no vote; 0: longer than any test
	Unguarded bool          // nodes that have forgotten vote at once
}

// Apply implements [holdfast.Option] for the options that all kinds have.
func (o Options) Apply(s *holdfast.Settings) error {
	s.Lease = cmp.Or(o.Lease, s.Lease)
	s.Label, s.Prefix, s.Logger = cmp.Or(o.Label, s.Label), o.Prefix, cmp.Or(o.Logger, s.Logger)
	s.Fencing, s.MaxHold, s.MaxWaiters, s.MaxOutage = o.Fencing, o.MaxHold, o.MaxWaiters, o.MaxOutage
	s.Replicas, s.ReplicaTimeout, s.Observer = o.Replicas, o.ReplicaTimeout, o.Observer
	if o.Handover != nil {
		s.LocalHandover = *o.Handover
	}
	return nil
}

// Opens is what New makes: with an error a nil that is of no type.
func Opens[L Locker](l L, err error) (Locker, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Open makes a locker on client and closes it with the test. Its errors and log lines may
// tell no secrets.
func (k Kind) Open(t testing.TB, client rueidis.Client, o Options) Locker {
	t.Helper()
	if o.Logger == nil {
		o.Logger = discreetLog(t)
	}
	o.Prefix = k.Prefix
	l, err := k.New(client, o)
	if err != nil {
		t.Fatalf("%s: New: %v", k.Name, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return discreet{l, t}
}
