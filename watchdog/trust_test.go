package watchdog_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/watchdog"
)

func TestMargin(t *testing.T) {
	require.Equal(t, 302*time.Millisecond, watchdog.Margin(30*time.Second))
	require.Equal(t, 3*time.Millisecond, watchdog.Margin(100*time.Millisecond))
}

func TestG2_FixedLeaseEndsAtItsTrustedDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		anchor := time.Now()
		pass(time.Second) // the acquire took a second
		h := r.hold(watchdog.Terms{Anchor: anchor, Lease: 10 * time.Second})
		r.lives(h, anchor.Add(9898*time.Millisecond))

		pass(9898*time.Millisecond - time.Second - 1)
		require.True(t, h.Alive())
		pass(1)
		require.False(t, h.Alive())
		synctest.Wait()
		r.ended(h, watchdog.ErrFixedLease, anchor.Add(9898*time.Millisecond))
		require.Equal(t, anchor.Add(9898*time.Millisecond), h.Deadline(), "an ended lease keeps its deadline")
		require.False(t, r.Forget(h))
		require.Zero(t, r.calls())
	})
}

func TestG2_RenewalCountsFromTheStartOfItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
			time.Sleep(2 * time.Second)
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{})
		pass(11 * time.Second)
		r.lives(h, begin.Add(trusted)) // in flight: proves nothing yet
		pass(2 * time.Second)
		r.lives(h, begin.Add(lease/3+trusted))
		pass(30 * time.Second)
		require.Equal(t, []time.Duration{lease / 3, 2 * lease / 3, lease, 4 * lease / 3}, r.starts(h, begin))
	})
}

func TestG2_LongFirstLeaseIsNotTrustedBeyondARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The first renewal sets the expiry to one lease of the watchdog; its answer may be lost.
		r := newRig(t, answerNothing, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{Lease: 10 * lease, Renew: true})
		pass(2 * lease)
		r.ended(h, watchdog.ErrDeadline, begin.Add(trusted))
	})
}

func TestShortFirstLeaseIsRenewedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{Lease: 6 * time.Second, Renew: true})
		pass(3 * time.Second)
		r.lives(h, begin.Add(2*time.Second+trusted))
		pass(10 * time.Second)
		require.Equal(t, []time.Duration{2 * time.Second, 12 * time.Second}, r.starts(h, begin))
	})
}

func TestMaxHoldEndsARenewedHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		anchor := time.Now()
		pass(time.Second)
		h := r.hold(watchdog.Terms{Anchor: anchor, Renew: true, MaxHold: 45 * time.Second})
		pass(30 * time.Second)
		r.lives(h, anchor.Add(45*time.Second)) // renewed at 10 s, 20 s and 30 s
		pass(14*time.Second - 1)
		require.True(t, h.Alive())
		pass(1)
		r.ended(h, watchdog.ErrMaxHold, anchor.Add(45*time.Second))
		calls := r.calls()
		pass(lease)
		require.Equal(t, calls, r.calls())
	})
}

func TestMaxHoldEndsAHoldBeforeItsFirstRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{Renew: true, MaxHold: time.Second})
		pass(lease)
		r.ended(h, watchdog.ErrMaxHold, begin.Add(time.Second))
		require.Zero(t, r.calls())
	})
}

func TestMaxHoldIsNotTheReasonWhenTheLeaseRanOutBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, answerNothing, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{Renew: true, MaxHold: lease})
		pass(2 * lease)
		r.ended(h, watchdog.ErrDeadline, begin.Add(trusted))
	})
}

func TestMaxHoldMayBeForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		pass(time.Second)
		h := r.hold(watchdog.Terms{Renew: true, MaxHold: math.MaxInt64})
		pass(10 * lease)
		require.True(t, h.Alive())
	})
}

func TestLeaseThatIsOverAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		pass(2 * lease)
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		for _, terms := range []watchdog.Terms{
			{Anchor: begin, Renew: true}, // ended before there was a watchdog
			{Anchor: begin},
			{Lease: time.Millisecond, Renew: true}, // shorter than its margin
		} {
			h := r.hold(terms)
			require.False(t, h.Alive())
			require.False(t, h.Deadline().After(time.Now()))
			synctest.Wait()
			want := watchdog.ErrDeadline
			if !terms.Renew {
				want = watchdog.ErrFixedLease
			}
			r.ended(h, want, time.Now())
		}
		require.Zero(t, r.calls())
	})
}

func TestLeaseBeforeWatch(t *testing.T) {
	var l watchdog.Lease
	require.False(t, l.Alive())
	require.True(t, l.Deadline().IsZero())
}

func TestDeadlineKeepsTheMonotonicReading(t *testing.T) {
	r := newRig(t, renewAll, watchdog.Config[*held]{})
	defer r.Close()
	require.Contains(t, r.hold(watchdog.Terms{}).Deadline().String(), "m=")
}

func TestG2_WhatIsOverIsNotRenewedThoughItsEndIsNotYetReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{Batch: 1, Parallel: 1})
		defer r.Close()
		for range 500 { // more than end at once
			r.hold(watchdog.Terms{Anchor: time.Now().Add(-lease), Renew: true})
		}
		synctest.Wait()
		require.Zero(t, r.calls())
	})
}
