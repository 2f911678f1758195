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
	add := func(set bool, option rlock.Option) {
		if set {
			opts = append(opts, option)
		}
	}
	add(o.Label != "", rlock.WithLabel(o.Label))
	add(o.Prefix != "", rlock.WithPrefix(o.Prefix))
	add(o.Lease != 0, rlock.WithLease(o.Lease))
	add(o.Fencing, rlock.WithFencing())
	add(o.MaxHold != 0, rlock.WithMaxHold(o.MaxHold))
	add(o.MaxWaiters != 0, rlock.WithMaxWaiters(o.MaxWaiters))
	add(o.Replicas != 0, rlock.WithReplicas(o.Replicas, o.ReplicaTimeout))
	add(o.Logger != nil, rlock.WithLogger(o.Logger))
	if o.Handover != nil {
		add(true, rlock.WithLocalHandover(*o.Handover))
	}
	if o.MaxOutage != nil {
		add(true, rlock.WithMaxOutage(*o.MaxOutage))
	}
	if o.Observer != nil {
		add(true, rlock.WithObserver(*o.Observer))
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

func TestFaults(t *testing.T) { faults.Run(t, kind.InVirtualTime()) }

func TestG1_Soak(t *testing.T) { exclusion.Run(t, kind) }

func TestG1_SoakFindsABrokenLock(t *testing.T) { exclusion.RunControl(t, kind) }
