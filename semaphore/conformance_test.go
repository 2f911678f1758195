package semaphore_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/cluster"
	"github.com/holdfast-go/holdfast/internal/locktest/contract"
	"github.com/holdfast-go/holdfast/internal/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/locktest/faults"
	"github.com/holdfast-go/holdfast/internal/locktest/sentinel"
)

func TestConformance(t *testing.T) { t.Parallel(); contract.Run(t, kind.InVirtualTime()) }

func TestConformance_OnRedis(t *testing.T) {
	t.Parallel()
	locktest.InTestAll(t)
	contract.Run(t, kind)
}

func TestConformance_Prefix(t *testing.T) {
	t.Parallel()
	locktest.WithoutRace(t)
	contract.Run(t, kind.WithPrefix("lock:").InVirtualTime())
}

func TestConformance_Cluster(t *testing.T) {
	t.Parallel()
	locktest.InTestServers(t)
	contract.Run(t, kind.OnCluster(t))
}

func TestConformance_Masters(t *testing.T) { t.Parallel(); contract.Run(t, kind.OnMasters(t)) }

func TestConformance_Sentinel(t *testing.T) {
	t.Parallel()
	locktest.InTestServers(t)
	contract.Run(t, kind.OnSentinels(t))
}

func TestFaults(t *testing.T) { faults.Run(t, kind.InVirtualTime()) }

func TestFaults_OnRedis(t *testing.T) { faults.RunReal(t, kind) }

func TestFaults_Cluster(t *testing.T) {
	locktest.InTestServers(t)
	faults.RunAll(t, kind.OnCluster(t))
}

func TestCluster(t *testing.T) { cluster.Run(t, kind) }

func TestSentinel(t *testing.T) { sentinel.Run(t, kind) }

func TestG1_Soak(t *testing.T) { exclusion.Run(t, kind) }
