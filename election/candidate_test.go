package election_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/election"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is more than a few round trips, and the pause after a campaign without an answer.
const soon = 3 * time.Second

// long is several leases.
const long = 2 * time.Minute

// world has the Redis of some processes.
type world struct {
	process func() sim.Locker // another one
	forget  func()            // Redis loses its memory
	away    func(bool)        // Redis goes away, and comes back
}

// onAll runs a test in virtual time on each kind of lock that has fences, and on the double.
func onAll(t *testing.T, test func(*testing.T, world)) {
	for name, open := range map[string]func(*testing.T) world{
		"holdfasttest": double,
		"rlock":        simulated(1, func(c []rueidis.Client) (sim.Locker, error) { return rlock.New(c[0], holdfast.WithFencing()) }),
		"fair":         simulated(1, func(c []rueidis.Client) (sim.Locker, error) { return fair.New(c[0], holdfast.WithFencing()) }),
		"rwlock":       simulated(1, func(c []rueidis.Client) (sim.Locker, error) { return rwlock.New(c[0], holdfast.WithFencing()) }),
		"multilock": simulated(3, func(c []rueidis.Client) (sim.Locker, error) {
			return multilock.New(c, holdfast.WithFencing(), multilock.WithoutRestartGuard())
		}),
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, open(t)) }) })
	}
}

func double(t *testing.T) world {
	locks := redistest.Must(holdfasttest.New(holdfast.WithFencing()))(t)
	all := []*holdfasttest.Locker{locks}
	return world{
		process: func() sim.Locker { all = append(all, locks.Another()); return all[len(all)-1] },
		forget: func() {
			for _, l := range all {
				if l.Lose("g") == nil { // another may have it by now
					return
				}
			}
		},
		away: func(on bool) {
			if locks.Outage(0); on {
				locks.Outage(time.Hour)
			}
		},
	}
}

func simulated(servers int, open func([]rueidis.Client) (sim.Locker, error)) func(*testing.T) world {
	return func(t *testing.T) world {
		var n sim.Network
		var all []*sim.Server
		for range servers {
			all = append(all, sim.Start(t, &n))
		}
		return world{
			process: func() sim.Locker {
				var clients []rueidis.Client
				for _, s := range all {
					clients = append(clients, s.Client(t))
				}
				l := redistest.Must(open(clients))(t)
				t.Cleanup(func() { _ = l.Close() })
				return l
			},
			forget: func() {
				for _, s := range all {
					s.Forget()
				}
			},
			away: func(on bool) {
				for _, s := range all {
					if s.Kill(); !on {
						s.RestartWithMemory()
					}
				}
			},
		}
	}
}

// candidate campaigns, and leads for as long as the test wants.
type candidate struct {
	*election.Election
	cancel  context.CancelCauseFunc
	terms   chan context.Context // one for each term that has begun
	returns chan error           // what its lead returns, when it has stopped
	ended   chan error           // of Run
}

func stand(t *testing.T, l holdfast.Locker, opts ...holdfast.LockOption) *candidate {
	e := redistest.Must(election.New(l, "g", opts...))(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	c := &candidate{e, cancel, make(chan context.Context, 9), make(chan error), make(chan error, 1)}
	go func() {
		c.ended <- e.Run(ctx, func(ctx context.Context) error {
			c.terms <- ctx
			select {
			case err := <-c.returns:
				return err
			case <-t.Context().Done(): // the test has failed
				return nil
			}
		})
	}()
	return c
}

// leads waits until a term has begun, at most for so long.
func (c *candidate) leads(t *testing.T, within time.Duration) context.Context {
	t.Helper()
	return received(t, c.terms, within)
}

func received[T any](t *testing.T, from <-chan T, within time.Duration) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(within):
		require.FailNow(t, "nothing in "+within.String())
	}
	return v
}
