package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// emptyKey is a key with neither hold nor waiters.
func emptyKey() *Key {
	return &Key{stripe: &stripe{engine: &Engine{discipline: careless{}}}}
}

// careless is a discipline that takes no note of waiters that have left.
type careless struct{ Discipline }

func (careless) WaiterLeft(*Key, *Waiter) {}

func TestWaitersKeepTheirOrder(t *testing.T) {
	k := emptyKey()
	var want []*Waiter
	for range 2000 {
		switch n := rand.N(10); {
		case n < 5:
			w := k.NewWaiter(Terms{}, nil, 0)
			k.Push(w)
			want = append(want, w)
		case n == 5:
			w := k.NewWaiter(Terms{}, nil, 0)
			k.pushEarly(w)
			want = append([]*Waiter{w}, want...)
		case len(want) > 0:
			i := rand.N(len(want))
			k.Remove(want[i])
			require.False(t, want[i].waiting())
			want = slices.Delete(want, i, i+1)
		}
		require.Equal(t, len(want), k.Waiting())
		require.True(t, slices.Equal(want, slices.Collect(k.All())))
	}
}

func TestFailEndsTheWaitsThatHaveAReason(t *testing.T) {
	k := emptyKey()
	var stay, gone []*Waiter
	for i := range 9 {
		w := k.NewWaiter(Terms{MaxHold: time.Duration(i)}, nil, 0)
		k.Push(w)
		if i%2 == 0 {
			stay = append(stay, w)
		} else {
			gone = append(gone, w)
		}
	}
	k.Fail(func(w *Waiter) error {
		if w.Terms.MaxHold%2 == 1 {
			return holdfast.ErrUnavailable
		}
		return nil
	})
	require.Equal(t, stay, slices.Collect(k.All()))
	for _, w := range gone {
		require.Equal(t, holdfast.ErrUnavailable, (<-w.ready).err)
	}
}

func TestG10_FencesOfOneHoldNeverRunAheadOfTheClock(t *testing.T) {
	by := calls.New(time.Minute, nil)
	granted := by.Now()
	f := fences{first: 1000, current: 1000, last: 1000 + 5000}
	for !f.usedUp() {
		if f.ready(by, granted) { // else this goroutine was away for a while; ready need not wait for that
			f.current++
		}
		passed := by.Now() - granted
		require.LessOrEqual(t, f.current-f.first, passed.Microseconds())
	}
	require.False(t, f.ready(by, granted), "all reserved numbers were used")
	require.Zero(t, f.used(), "nothing to give back")
	require.True(t, (*fences)(nil).ready(by, granted))
	require.Zero(t, (*fences)(nil).used())
}

// The clock of a bubble stands still as long as a goroutine runs. Then a hold is released, for
// its next holder to get a number from Redis.
func TestG10_AClockThatStandsStillEndsHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		by := calls.New(time.Minute, nil)
		defer by.Close(func() {}, func(context.Context) {})
		f := fences{first: 1000, current: 1000, last: 1000 + 5000}
		require.False(t, f.ready(by, by.Now()))
		time.Sleep(2 * time.Microsecond)
		require.True(t, f.ready(by, by.Now()-2*time.Microsecond))
	})
}

// A waiter of the pool that was asked for its place is not for the next caller.
func TestAWaiterOfThePoolForgetsPlaces(t *testing.T) {
	k := emptyKey()
	for range 100 { // the pool may drop one
		w := k.NewWaiter(Terms{}, func(int) {}, 0)
		w.Tell(3)
		k.engine.putBack(w)
		next := k.NewWaiter(Terms{}, nil, 0)
		require.Nil(t, next.places)
		require.Zero(t, next.told)
		k.engine.putBack(next)
	}
}
