package holdfasttest_test

import (
	"testing"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/contract"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kind adapts the double to the conformance suite.
var kind = locktest.Kind{
	Name: "holdfasttest",
	New: func(_ rueidis.Client, o locktest.Options) (locktest.Locker, error) {
		var opts []holdfast.Option
		if o.Lease != 0 {
			opts = append(opts, holdfast.WithLease(o.Lease))
		}
		if o.Fencing {
			opts = append(opts, holdfast.WithFencing())
		}
		if o.MaxHold != 0 {
			opts = append(opts, holdfast.WithMaxHold(o.MaxHold))
		}
		if o.MaxWaiters != 0 {
			opts = append(opts, holdfast.WithMaxWaiters(o.MaxWaiters))
		}
		if o.MaxOutage != nil {
			opts = append(opts, holdfast.WithMaxOutage(*o.MaxOutage))
		}
		l, err := holdfasttest.New(opts...)
		if err != nil {
			return nil, err
		}
		return l, nil
	},
	Another: func(l locktest.Locker) locktest.Locker { return l.(*holdfasttest.Locker).Another() },
}

func TestConformance(t *testing.T) { t.Parallel(); contract.Run(t, kind) }
