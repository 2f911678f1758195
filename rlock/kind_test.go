package rlock_test

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/cluster"
	"github.com/holdfast-go/holdfast/internal/locktest/contract"
	"github.com/holdfast-go/holdfast/internal/locktest/exclusion"
	"github.com/holdfast-go/holdfast/internal/locktest/faults"
	"github.com/holdfast-go/holdfast/internal/locktest/sentinel"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { locktest.Main(m, kind) }

// kind adapts rlock to the conformance suite.
var kind = locktest.Kind{Name: "rlock", New: func(client rueidis.Client, o locktest.Options) (holdfast.Locker, error) {
	var opts []rlock.Option
	if o.Label != "" {
		opts = append(opts, rlock.WithLabel(o.Label))
	}
	if o.Prefix != "" {
		opts = append(opts, rlock.WithPrefix(o.Prefix))
	}
	if o.Lease != 0 {
		opts = append(opts, rlock.WithLease(o.Lease))
	}
	if o.Handover != nil {
		opts = append(opts, rlock.WithLocalHandover(*o.Handover))
	}
	if o.Fencing {
		opts = append(opts, rlock.WithFencing())
	}
	if o.MaxHold != 0 {
		opts = append(opts, rlock.WithMaxHold(o.MaxHold))
	}
	if o.MaxWaiters != 0 {
		opts = append(opts, rlock.WithMaxWaiters(o.MaxWaiters))
	}
	if o.MaxOutage != nil {
		opts = append(opts, rlock.WithMaxOutage(*o.MaxOutage))
	}
	if o.Replicas != 0 {
		opts = append(opts, rlock.WithReplicas(o.Replicas, o.ReplicaTimeout))
	}
	if o.Observer != nil {
		opts = append(opts, rlock.WithObserver(*o.Observer))
	}
	if o.Logger != nil {
		opts = append(opts, rlock.WithLogger(o.Logger))
	}
	l, err := rlock.New(client, opts...)
	if err != nil {
		return nil, err
	}
	return l, nil
}}

func TestConformance(t *testing.T) { t.Parallel(); contract.Run(t, kind.InVirtualTime()) }

func TestConformance_OnRedis(t *testing.T) {
	t.Parallel()
	locktest.InTestAll(t)
	contract.Run(t, kind)
}

func TestConformance_Prefix(t *testing.T) {
	t.Parallel()
	contract.Run(t, kind.WithPrefix("lock:").InVirtualTime())
}

func TestConformance_Cluster(t *testing.T) { t.Parallel(); contract.Run(t, kind.OnCluster(t)) }

func TestConformance_Masters(t *testing.T) { t.Parallel(); contract.Run(t, kind.OnMasters(t)) }

func TestConformance_Sentinel(t *testing.T) { t.Parallel(); contract.Run(t, kind.OnSentinels(t)) }

func TestFaults_Cluster(t *testing.T) { faults.Run(t, kind.OnCluster(t)) }

func TestCluster(t *testing.T) { cluster.Run(t, kind) }

func TestG9_ManyKeysOfAMasterThatHangs(t *testing.T) { cluster.RunMany(t, kind) }

func TestSentinel(t *testing.T) { sentinel.Run(t, kind) }

func FuzzKeys(f *testing.F) { contract.FuzzKeys(f, kind) }

func TestFaults(t *testing.T) { faults.Run(t, kind.InVirtualTime()) }

func TestG1_Soak(t *testing.T) { exclusion.Run(t, kind) }

func TestG1_SoakFindsABrokenLock(t *testing.T) { exclusion.RunControl(t, kind) }
