package multilock_test

import (
	"context"
	"os"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/multilock"
)

func init() {
	locktest.ChaosDoor = locktest.Masters{
		New: func(clients []rueidis.Client, o locktest.MastersOptions) (locktest.Locker, error) {
			l, err := masters(clients, o)
			if err != nil {
				return nil, err
			}
			return locker{l}, nil
		},
		Bootstrap: func(clients []rueidis.Client, o locktest.MastersOptions) error {
			l, err := masters(clients, o)
			if err != nil {
				return err
			}
			defer l.Close()
			return l.Bootstrap(context.Background(), multilock.NothingHeld())
		},
	}
}

func masters(clients []rueidis.Client, o locktest.MastersOptions) (*multilock.Locker, error) {
	opts := []multilock.Option{multilock.WithLease(o.Lease), multilock.WithFencing()}
	if o.Handover != nil {
		opts = append(opts, multilock.WithLocalHandover(*o.Handover))
	}
	if o.Unguarded {
		opts = append(opts, multilock.WithoutRestartGuard())
	}
	return multilock.New(clients, opts...)
}

// onlyChaos leaves out the campaigns unless they are asked for.
func onlyChaos(t *testing.T) {
	if os.Getenv("CHAOS_TIME") == "" {
		t.Skip("make test and make chaos run the campaigns")
	}
}

func TestG1_Chaos(t *testing.T) {
	onlyChaos(t)
	locktest.RunChaos(t)
}

// Each of these is a lock that must fail, and does.
func TestG1_ChaosControls(t *testing.T) {
	onlyChaos(t)
	for _, how := range []string{"unguarded", "clocks", "half"} {
		t.Run(how, func(t *testing.T) { locktest.RunChaosControl(t, how) })
	}
}
