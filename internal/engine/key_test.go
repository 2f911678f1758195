package engine

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// obedient is a backend and a discipline that release whatever they are told to.
type obedient struct {
	Backend
	careless
	calls    *calls.Calls
	released chan string
}

func (o obedient) Calls() *calls.Calls                      { return o.calls }
func (obedient) Abandoned(string)                           {}
func (obedient) Drain(context.Context, func(string, error)) {}
func (obedient) Close()                                     {}

func (o obedient) Release(_ context.Context, h *Hold, _ int64) (wire.ReleaseReply, error) {
	o.released <- h.Owner
	return wire.ReleaseReply{Ours: true}, nil
}

func (obedient) HoldLost(*Key, *Hold) {}

func newObedient() obedient {
	return obedient{calls: calls.New(time.Minute, nil), released: make(chan string, 10)}
}

// newEngine returns an engine on a backend that is its discipline, too.
func newEngine(t *testing.T, b interface {
	Backend
	Discipline
}, change func(*Config)) *Engine {
	c, err := Configure("test", "New", nil, nil)
	require.NoError(t, errors.Join(err, c.Check()))
	change(&c)
	e := New(b, b, c)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func asItIs(*Config) {}

// Redis may have granted a key to a waiter here before the reply to an attempt arrives: what the
// attempt got is over. A grant that comes later than a hold ends that hold.
func TestG1_AKeyHasOneHold(t *testing.T) {
	o := newObedient()
	e := newEngine(t, o, asItIs)
	k := e.NewKey("k")
	hold := func(owner string) *Hold {
		return e.NewHold(k, owner, Terms{Lease: e.Lease}, time.Now(), wire.AcquireReply{}, nil)
	}
	k.Lock()
	first := e.Adopt(Attempt{Hold: hold("first")}, nil)
	require.NotNil(t, first)
	require.Nil(t, e.Adopt(Attempt{Hold: hold("second")}, nil))
	k.Unlock()
	require.Equal(t, "second", <-o.released)
	require.NoError(t, first.Err())

	k.Lock()
	third := e.AdoptGrant(hold("third"), k.NewWaiter(Terms{}, nil, 0))
	k.Unlock()
	require.ErrorIs(t, first.Err(), watchdog.ErrNotOurs)
	require.NoError(t, third.Err())
	require.True(t, k.HeldBy("third"))
	require.False(t, k.HeldBy("first"))
}

// A hold that ends before its caller has it was nobody else's: the outcome is not "held by another".
func TestAHoldThatEndsBeforeItIsAdopted(t *testing.T) {
	e, hold := several(t)
	k := e.NewKey("k")
	a := Attempt{Hold: hold(k, "late")}
	e.lose(a.Hold, watchdog.ErrDeadline)
	k.Lock()
	defer k.Unlock()
	require.Nil(t, e.Adopt(a, nil))
	require.ErrorIs(t, a.Failure(), holdfast.ErrUnknown)
}

// several returns an engine whose keys may have several holds, and what makes one.
func several(t *testing.T) (*Engine, func(k *Key, owner string) *Hold) {
	e := newEngine(t, newObedient(), func(c *Config) { c.Holds = ManyHolds })
	return e, func(k *Key, owner string) *Hold {
		return e.NewHold(k, owner, Terms{Lease: e.Lease}, time.Now(), wire.AcquireReply{}, nil)
	}
}

func TestAKeyMayHaveSeveralHolds(t *testing.T) {
	e, hold := several(t)
	k := e.NewKey("k")
	k.Lock()
	defer k.Unlock()
	var all []*Hold
	for range 5 {
		h := hold(k, "owner")
		require.False(t, k.has(h))
		require.NotNil(t, e.Adopt(Attempt{Hold: h}, nil))
		require.True(t, k.has(h))
		all = append(all, h)
	}
	slices.Reverse(all)
	require.Equal(t, all, slices.Collect(k.holds()))
	for _, i := range []int{2, 0, 2, 1, 0} { // in the middle, newest, oldest, oldest, the only one
		h := all[i]
		h.watchdog.Forget(h)
		require.True(t, k.remove(h))
		require.False(t, k.remove(h))
		all = slices.Delete(all, i, i+1)
		require.Equal(t, len(all) > 0, k.Held())
		require.True(t, slices.Equal(all, slices.Collect(k.holds())))
	}
	for range 3 {
		require.NotNil(t, e.Adopt(Attempt{Hold: hold(k, "owner")}, nil))
	}
	for h := range k.holds() {
		h.watchdog.Forget(h)
		k.remove(h)
	}
	require.False(t, k.Held(), "each hold was seen once, though forgotten meanwhile")
}

// First attempts of callers that came at the same time may be refused in any order.
func TestRefusedCallersWaitInTheOrderInWhichTheyBegan(t *testing.T) {
	e, _ := several(t)
	k := e.NewKey("k")
	at := func(since time.Duration) *Waiter { return k.NewWaiter(Terms{}, nil, since) }
	want := []*Waiter{at(1), at(2), at(3), at(4), at(9)}
	k.pushEarly(want[2])
	k.Push(want[4])
	k.pushEarly(want[0])
	k.pushEarly(want[3])
	k.pushEarly(want[1])
	require.True(t, slices.Equal(want, slices.Collect(k.All())))
}
