package multilock_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/contract"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/faults"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

func TestMain(m *testing.M) { locktest.Main(m, kind) }

// kind adapts multilock on one node to the conformance suite.
var kind = kindOf(1)

func kindOf(nodes int) locktest.Kind {
	return locktest.Kind{Name: "multilock", Nodes: nodes, New: newLocker}
}

func newLocker(client rueidis.Client, o locktest.Options) (locktest.Locker, error) {
	o.Replicas, o.ReplicaTimeout = 0, 0
	// As long as possible, a tenth of a lease: tests hold up calls.
	opts := []holdfast.Option{o, multilock.WithMaxLease(cmp.Or(o.MaxLease, time.Hour)), multilock.WithNodeTimeout(time.Minute)}
	if o.Unguarded {
		opts = append(opts, multilock.WithoutRestartGuard())
	}
	l, err := multilock.New(locktest.Clients(client), onOld(opts)...)
	if err != nil {
		return nil, err
	}
	for range 10 { // a node that has just started may be slow to answer
		if err = l.DeclareNothingHeld(context.Background()); err == nil {
			return l, nil
		}
	}
	return nil, errors.Join(err, l.Close())
}

// onOld adds to the options of a locker that it has no restart guard, where the servers cannot
// have it.
func onOld(opts []holdfast.Option) []holdfast.Option {
	if redistest.Before7() {
		return append(opts, multilock.WithoutRestartGuard())
	}
	return opts
}

// needGuard skips a test of the restart guard where the servers cannot have it.
func needGuard(t *testing.T) {
	t.Helper()
	redistest.NeedRedis7(t, "it keeps scripts over a restart, so there is no restart guard")
}

func TestConformance(t *testing.T)         { contract.Run(t, kind.InVirtualTime, locktest.WithoutRace) } // the next has more at once
func TestConformance3(t *testing.T)        { contract.Run(t, onSeveral(3)) }
func TestConformance5(t *testing.T)        { contract.Run(t, onSeveral(5), locktest.InTestAll) }
func TestConformance_OnRedis(t *testing.T) { contract.Run(t, kind.InRealTime, locktest.InTestAll) }
func TestConformance_Prefix(t *testing.T)  { contract.Run(t, kind.Prefixed) }

func TestFaults(t *testing.T)          { faults.Run(t, kind.InVirtualTime, locktest.WithoutRace) } // the next has more at once
func TestFaults3(t *testing.T)         { faults.Run(t, onSeveral(3)) }
func TestFaults5(t *testing.T)         { faults.Run(t, onSeveral(5), locktest.InTestAll) }
func TestFaults_OnRedis(t *testing.T)  { faults.RunReal(t, kind) }
func TestFaults3_OnRedis(t *testing.T) { faults.RunReal(t, kindOf(3), locktest.InTestAll) }
func TestFaults5_OnRedis(t *testing.T) {
	faults.RunReal(t, kindOf(5), locktest.InTestAll, locktest.InTestServers)
}

// onSeveral is the lock kind on several nodes, in virtual time. On real ones it is for the long tests only.
func onSeveral(nodes int) locktest.Place {
	return func(t *testing.T) locktest.Kind {
		d := kindOf(nodes).InVirtualTime(t)
		if !d.Virtual {
			locktest.InTestAll(t)
		}
		return d
	}
}
