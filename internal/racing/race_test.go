package racing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/pubsub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nowhere is a backend that no call may reach.
type nowhere struct{ Backend }

func (nowhere) Calls() *calls.Calls                        { return calls.New(time.Minute, nil) }
func (nowhere) Drain(context.Context, func(string, error)) {}
func (nowhere) Close()                                     {}

func testDiscipline(t *testing.T) *discipline {
	c, err := engine.Configure("test", "New", nil, nil)
	require.NoError(t, errors.Join(err, c.Check()))
	d := newDiscipline(nowhere{}, c)
	t.Cleanup(func() { require.NoError(t, d.engine.Close()) })
	return d
}

// live is a subscription that has received some messages.
type live uint64

func (l live) State() pubsub.State { return seen(uint64(l)) }
func (live) Wake() <-chan struct{} { return nil }
func (live) Close()                {}

// A release with waiters here gives the other listeners their turns. This process' own
// subscription is not one of them, and its own message is not a turn.
func TestG4_AReleaseStepsBackForTheOtherListeners(t *testing.T) {
	for name, c := range map[string]struct {
		handover    time.Duration
		waits, hear bool
		released    wire.ReleaseReply
		distance    uint64
	}{
		"subscribed":         {time.Second, true, true, wire.ReleaseReply{Ours: true, Listeners: 3}, 2},
		"not subscribed yet": {time.Second, true, false, wire.ReleaseReply{Ours: true, Listeners: 3}, 3},
		"alone":              {time.Second, true, true, wire.ReleaseReply{Ours: true, Listeners: 1}, 0},
		"nobody waits here":  {time.Second, false, false, wire.ReleaseReply{Ours: true, Listeners: 3}, 0},
		"no handover":        {0, true, true, wire.ReleaseReply{Ours: true, Listeners: 3}, 0},
		"not released":       {time.Second, true, true, wire.ReleaseReply{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := testDiscipline(t)
			k := d.engine.NewKey("k")
			d.engine.LocalHandover = c.handover
			if c.waits {
				k.Push(k.NewWaiter(engine.Terms{}, nil, 0))
			}
			if c.hear {
				d.ensureRace(k).sub = live(7)
				d.ensureRace(k).running = true // as with several holds
			}
			d.BeforeRelease(k)
			require.Equal(t, c.hear, raceOf(k) != nil && raceOf(k).turns.coming == 1)
			d.AfterRelease(k, c.released)
			if c.hear {
				require.Zero(t, raceOf(k).turns.coming)
				require.Equal(t, c.distance == 0, raceOf(k).probe, "the loop tries at once, unless others have their turns")
				require.Len(t, raceOf(k).poke, 1, "and looks in any case")
			}
			if raceOf(k) == nil {
				require.Zero(t, c.distance)
				return
			}
			turns := raceOf(k).turns
			require.Equal(t, c.distance, turns.distance)
			require.Equal(t, c.distance > 0, raceOf(k).contended)
			if c.distance > 0 && c.hear {
				require.False(t, turns.mine(seen(7+c.distance), time.Now()), "one of them was ours")
				require.True(t, turns.mine(seen(8+c.distance), time.Now()))
			}
		})
	}
}

// A key has at most one call or loop under way. Its end settles the key.
func TestNothingBeginsWhileACallIsUnderWay(t *testing.T) {
	d := testDiscipline(t)
	k := d.engine.NewKey("k")
	k.Go(func() {})
	k.Push(k.NewWaiter(engine.Terms{}, nil, 0))
	d.Settle(k) // else a loop begins, and panics
}

// The state of a key without waiters stays while a call for it is under way.
func TestNothingEndsWhileACallIsUnderWay(t *testing.T) {
	d := testDiscipline(t)
	k := d.engine.NewKey("k")
	k.Go(func() {})
	d.ensureRace(k)
	d.Settle(k)
	require.NotNil(t, raceOf(k))
}

// undoes is a backend that notes which owners are given up.
type undoes struct {
	nowhere
	up chan string
}

func (u undoes) Release(_ context.Context, r wire.ReleaseRequest) (wire.ReleaseReply, error) {
	u.up <- r.Owner
	return wire.ReleaseReply{}, nil
}

func (undoes) Abandoned(string) {}

// Where a key may have several holds, several first attempts may each leave an orphan.
func TestF7_EachFirstAttemptIsUndone(t *testing.T) {
	for _, holds := range []engine.Holds{engine.ManyHolds, engine.SharedHolds} {
		synctest.Test(t, func(t *testing.T) {
			c, err := engine.Configure("test", "New", nil, nil)
			require.NoError(t, errors.Join(err, c.Check()))
			c.Holds = holds
			u := undoes{up: make(chan string, 9)}
			d := newDiscipline(u, c)
			k := d.engine.NewKey("k")
			for _, owner := range []string{"a", "b"} {
				k.Lock()
				w := k.NewWaiter(engine.Terms{}, nil, 0)
				k.Push(w)
				d.JoinFirst(k, w, engine.Attempt{Orphan: &engine.Orphan{Name: "k", Owner: owner, Lease: time.Minute}})
				k.Unlock()
			}
			require.ElementsMatch(t, []string{"a", "b"}, []string{<-u.up, <-u.up})
			require.NoError(t, d.engine.Close())
		})
	}
}
