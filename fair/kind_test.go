package fair_test

import (
	"math"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/contract"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/faults"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/sentinel"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { locktest.Main(m, kind) }

// kind adapts fair to the conformance suite.
var kind = locktest.Kind{Name: "fair", Fair: true, New: func(client rueidis.Client, o locktest.Options) (locktest.Locker, error) {
	opts := []holdfast.Option{o}
	if o.WaiterTTL != 0 {
		opts = append(opts, fair.WithWaiterTTL(o.WaiterTTL))
	}
	if o.GrantLease != 0 {
		opts = append(opts, fair.WithGrantLease(o.GrantLease))
	}
	if o.Confirmed {
		opts = append(opts, fair.WithConfirmedGrants())
	}
	return locktest.Opens(fair.New(client, opts...))
}}

func TestConformance(t *testing.T)         { contract.Run(t, kind.InVirtualTime) }
func TestConformance_OnRedis(t *testing.T) { contract.Run(t, kind.InRealTime, locktest.InTestAll) }
func TestConformance_Prefix(t *testing.T)  { contract.Run(t, kind.Prefixed) }
func TestConformance_Cluster(t *testing.T) { contract.Run(t, kind.OnCluster, locktest.InTestServers) }
func TestConformance_Masters(t *testing.T) { contract.Run(t, kind.OnMasters) }
func TestConformance_Sentinel(t *testing.T) {
	contract.Run(t, kind.OnSentinels, locktest.InTestServers)
}

func TestFaults(t *testing.T)         { faults.Run(t, kind.InVirtualTime) }
func TestFaults_OnRedis(t *testing.T) { faults.RunReal(t, kind) }
func TestFaults_Cluster(t *testing.T) { faults.RunAll(t, kind.OnCluster) }

func TestCluster(t *testing.T)                       { cluster.Run(t, kind) }
func TestG9_ManyKeysOfAMasterThatHangs(t *testing.T) { cluster.RunMany(t, kind) }
func TestSentinel(t *testing.T)                      { sentinel.Run(t, kind) }

func TestG1_Soak(t *testing.T)                 { exclusion.Run(t, kind) }
func TestG1_SoakFindsABrokenLock(t *testing.T) { exclusion.RunControl(t, kind) }

const year = 365 * 24 * time.Hour

// The scripts accept every option that New accepts.
func TestF8_LongestOptionsWork(t *testing.T) {
	client := redistest.Start(t).Client(t)
	open := func() *fair.Locker {
		return userLocker(t, client, holdfast.WithLease(100*year), fair.WithWaiterTTL(30*year), fair.WithGrantLease(100*year), holdfast.WithMaxOutage(math.MaxInt64),
			holdfast.WithFencing(), holdfast.WithFenceExpiry(time.Duration(math.MaxInt64).Truncate(time.Millisecond)), holdfast.WithLocalHandover(100*year))
	}
	here, there := open(), open()
	held := locktest.Lock(t, here, t.Context(), "k", holdfast.MaxHold(math.MaxInt64))
	next := locktest.GoAcquire(func() (*holdfast.Lease, error) { return there.TryLockFor(t.Context(), "k", math.MaxInt64) })
	locktest.Await(t, func() bool {
		return locktest.Must(here.Inspect(t.Context(), "k"))(t).Waiting == 1 || len(next) > 0
	})
	require.NoError(t, locktest.Next(t, held, next).Unlock(t.Context()))
}
