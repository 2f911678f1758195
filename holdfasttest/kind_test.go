package holdfasttest_test

import (
	"testing"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// known are the options that the double has.
func known(o locktest.Options) locktest.Options {
	return locktest.Options{Lease: o.Lease, Fencing: o.Fencing, MaxHold: o.MaxHold, MaxWaiters: o.MaxWaiters, MaxOutage: o.MaxOutage}
}

// kind adapts the double to the conformance suite.
var kind = locktest.Kind{
	Name: "holdfasttest",
	New: func(_ rueidis.Client, o locktest.Options) (locktest.Locker, error) {
		return locktest.Opens(holdfasttest.New(known(o)))
	},
	Another: func(l locktest.Locker) locktest.Locker { return l.(*holdfasttest.Locker).Another() },
}

// permits is the double of a semaphore with one permit, which is a mutex.
var permits = locktest.Kind{
	Name: "holdfasttest semaphore", Permits: true,
	New: func(_ rueidis.Client, o locktest.Options) (locktest.Locker, error) {
		o.Fencing = false
		return locktest.Opens(holdfasttest.NewSemaphore(1, known(o)))
	},
	Another: kind.Another,
}

func TestConformance(t *testing.T)        { contract.Run(t, kind.InVirtualTime) }
func TestPermitsConformance(t *testing.T) { contract.Run(t, permits.InVirtualTime) }
