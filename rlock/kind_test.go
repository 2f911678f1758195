package rlock_test

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/cluster"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/contract"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/faults"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/sentinel"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { locktest.Main(m, kind) }

// kind adapts rlock to the conformance suite.
var kind = locktest.Kind{Name: "rlock", New: func(client rueidis.Client, o locktest.Options) (locktest.Locker, error) {
	return locktest.Opens(rlock.New(client, o))
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

// On a Redis Cluster, all that belongs to a name has to share its slot.
func TestPrefix_OnACluster(t *testing.T) {
	k := kind
	k.Cluster, k.Prefix = true, "lock{"
	l := k.Open(t, k.Start(t).Client(t), locktest.Options{})
	require.ErrorContains(t, locktest.ErrOf(l.TryLock(t.Context(), "a")), "hash tag")
	require.NoError(t, l.Do(t.Context(), "a}", func(context.Context) error { return nil }))
}
