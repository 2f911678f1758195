package multilock_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/chaos"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
	"github.com/holdfast-go/holdfast/multilock"
)

func init() {
	chaos.Tested = chaos.Masters{
		New: func(clients []rueidis.Client, o chaos.MastersOptions) (locktest.Locker, error) {
			return masters(clients, o)
		},
		NothingHeld: func(clients []rueidis.Client, o chaos.MastersOptions) error {
			l, err := masters(clients, o)
			if err != nil {
				return err
			}
			defer l.Close()
			return l.DeclareNothingHeld(context.Background())
		},
	}
}

func masters(clients []rueidis.Client, o chaos.MastersOptions) (*multilock.Locker, error) {
	opts := []holdfast.Option{holdfast.WithLease(o.Lease), multilock.WithNodeTimeout(o.Lease / 10), multilock.WithClockFaults(o.ClockFaults)}
	if o.Fencing {
		opts = append(opts, holdfast.WithFencing())
	}
	if o.Handover != nil {
		opts = append(opts, holdfast.WithLocalHandover(*o.Handover))
	}
	if o.Unguarded {
		opts = append(opts, multilock.WithoutRestartGuard())
	}
	return multilock.New(clients, opts...)
}

// chaosModes are the promises that the campaign tries to break.
var chaosModes = map[string]chaos.Campaign{
	"default":   {},
	"fencing":   {Fencing: true},
	"clocks":    {Clocks: true, Faults: 1},
	"unguarded": {Unguarded: true, Lasting: true, Fencing: true},
}

// chaosTime is the length of a campaign in one mode.
func chaosTime(t *testing.T) time.Duration {
	return exclusion.SoakTime(t, 150*time.Second) / time.Duration(len(chaosModes))
}

func TestG1_Chaos(t *testing.T) {
	locktest.InTestAll(t)
	length := chaosTime(t)
	for name, how := range chaosModes {
		t.Run(name, func(t *testing.T) {
			if !how.Unguarded {
				needGuard(t)
			} else if os.Getenv("SOAK_TIME") == "" {
				t.Skip("make soak DEPLOY=quorum runs it; the campaigns in virtual time have it, too")
			}
			chaos.Run(t, how, length)
		})
	}
}

func TestG1_NodesAreAddedAndRemovedOneByOne(t *testing.T) {
	needGuard(t)
	chaos.RunResize(t)
}

func TestG1_ControlTwoNodesAtOnce(t *testing.T) {
	needGuard(t)
	chaos.RunResizeControl(t)
}
