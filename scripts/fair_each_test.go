package scripts

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each hold is asked for by itself: what is another's, waited for, given up or no lock
// costs the others nothing.
func TestFairAcquireEach(t *testing.T) {
	for _, fencing := range []Fencing{{}, *fencingHour} {
		r := newHarness(t, func(s *FairSettings) { s.Fencing = fencing })
		f := r.of(ofA(1))
		r.s.Do(t, "HSET", "held", ownB, "1")
		r.s.Do(t, "SET", "string", "x")
		r.follow(ofC(1), ofB(1))
		r.expire()
		must(f.Leave(bounded(t), "gone", 1, ofA(5)))(t)
		before := state(t, r.s)

		asks := []Ask{{"free", ofA(1), lease}, {"held", ofA(2), lease}, {"k", ofA(3), lease}, {"string", ofA(4), lease}, {"gone", ofA(5), lease}, {"last", ofA(6), lease}, {"bad", ofJ(1), lease}}
		said := make([]Result[Acquired], len(asks))
		require.NoError(t, f.AcquireEach(bounded(t), asks, said))
		for _, i := range []int{0, 5} {
			require.True(t, said[i].Value.OK)
			require.Equal(t, fencing.Reserve != 0, said[i].Value.Fence > 0)
		}
		require.Equal(t, Result[Acquired]{Value: Acquired{Remaining: NoExpiry}}, said[1])
		require.Equal(t, Result[Acquired]{Value: Acquired{Remaining: time.Millisecond}}, said[2])
		require.Equal(t, Refused, OutcomeOf(said[3].Err))
		require.ErrorContains(t, said[3].Err, "WRONGTYPE")
		require.Equal(t, Result[Acquired]{Value: Acquired{Gone: true}}, said[4])
		require.Equal(t, Refused, OutcomeOf(said[6].Err))
		require.ErrorContains(t, said[6].Err, "owner must be")
		r.requireHeld(ofB(1), grantLease)
		require.Len(t, r.said(), 1, "the waiter is notified")
		after := state(t, r.s)
		for _, k := range []string{"held", "string"} {
			require.Equal(t, before[k], after[k])
		}
	}
}

// Each hold ends by itself, and each lock goes to its next waiter: one of this
// client is in the answer, another's is notified.
func TestFairReleaseEach(t *testing.T) {
	r := newHarness(t)
	f := r.of(ofA(1))
	r.follow(ofA(1), ofA(2))
	for i, key := range []string{"others", "alone"} {
		require.True(t, must(f.Acquire(bounded(t), key, ofA(3+i), lease))(t).OK)
	}
	b := r.of(ofB(1))
	r.subscribe(b.Inbox("others"))
	must(b.Enter(bounded(t), "others", ofB(1)))(t)
	r.s.Do(t, "SET", "string", "x")

	holds := []FairHold{
		{Hold: Hold{"k", ofA(1)}}, {Hold: Hold{"string", ofA(9)}}, {Hold: Hold{"others", ofA(3)}},
		{Hold: Hold{"free", ofA(9)}}, {Hold: Hold{"alone", ofA(4)}},
	}
	said := make([]Result[Passed], len(holds))
	require.NoError(t, f.ReleaseEach(bounded(t), holds, said))
	require.Equal(t, Result[Passed]{Value: Passed{Ours: true, Grant: granted(ofA(2))}}, said[0])
	require.Equal(t, Refused, OutcomeOf(said[1].Err))
	require.Equal(t, Result[Passed]{Value: Passed{Ours: true}}, said[2])
	require.Equal(t, Result[Passed]{}, said[3])
	require.Equal(t, Result[Passed]{Value: Passed{Ours: true}}, said[4])
	r.requireHeld(ofA(2), grantLease)
	require.Len(t, r.said(), 1)
	require.Zero(t, number(t, r.s, "EXISTS", "alone"))

	require.NoError(t, f.ReleaseEach(bounded(t), holds, said)) // again: nobody is served
	require.Equal(t, Result[Passed]{}, said[0])
	r.requireHeld(ofA(2), grantLease)
	r.requireSaid()
}

// Each owner leaves by itself: one that holds a lock gives it to the next waiter, and what
// arrives later takes nothing.
func TestFairLeaveEach(t *testing.T) {
	r := newHarness(t)
	f := r.of(ofA(1))
	r.follow(ofA(1), ofA(2), ofA(3))
	r.s.Do(t, "SET", "string", "x")
	holds := []Hold{{"k", ofA(1)}, {"string", ofA(9)}, {"free", ofA(4)}}
	said := make([]Result[Passed], len(holds))
	require.NoError(t, f.LeaveEach(bounded(t), holds, said))
	require.Equal(t, granted(ofA(2)), said[0].Value.Grant)
	require.Equal(t, Refused, OutcomeOf(said[1].Err))
	require.Equal(t, Result[Passed]{Value: Passed{Ours: true}}, said[2])
	for _, i := range []int{0, 2} {
		require.True(t, must(f.Acquire(bounded(t), holds[i].Key, holds[i].Owner, lease))(t).Gone)
	}
	r.requireHeld(ofA(2), grantLease)

	require.NoError(t, f.LeaveEach(bounded(t), holds, said)) // again: nobody is served
	require.Equal(t, Result[Passed]{Value: Passed{Ours: true}}, said[0])
	r.requireHeld(ofA(2), grantLease)
}
