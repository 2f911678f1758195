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

func TestG2_FixedLeaseEndsAtItsTrustedDeadline(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
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
	inBubble(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
		time.Sleep(2 * time.Second)
		all(answers, watchdog.Renewed)
	}, func(t *testing.T, r *harness) {
		h := r.hold(watchdog.Terms{})
		pass(11 * time.Second)
		r.lives(h, r.began.Add(trusted)) // in flight: proves nothing yet
		pass(2 * time.Second)
		r.lives(h, r.began.Add(lease/3+trusted))
		pass(30 * time.Second)
		require.Equal(t, []time.Duration{lease / 3, 2 * lease / 3, lease, 4 * lease / 3}, r.starts(h))
	})
}

func TestG2_LongFirstLeaseIsNotTrustedBeyondARenewal(t *testing.T) {
	// The first renewal sets the expiry to one lease of the watchdog; its answer may be lost.
	inBubble(t, answerNothing, func(t *testing.T, r *harness) {
		h := r.hold(watchdog.Terms{Lease: 10 * lease, Renew: true})
		pass(2 * lease)
		r.ended(h, watchdog.ErrDeadline, r.began.Add(trusted))
	})
}

func TestShortFirstLeaseIsRenewedInTime(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		h := r.hold(watchdog.Terms{Lease: 6 * time.Second, Renew: true})
		pass(3 * time.Second)
		r.lives(h, r.began.Add(2*time.Second+trusted))
		pass(10 * time.Second)
		require.Equal(t, []time.Duration{2 * time.Second, 12 * time.Second}, r.starts(h))
	})
}

func TestMaxHoldEndsARenewedHold(t *testing.T) {
	for _, c := range []struct {
		most   time.Duration
		answer server
		ends   time.Duration
		why    error
	}{
		{45 * time.Second, renewAll, 45 * time.Second, watchdog.ErrMaxHold},
		{2 * time.Second, renewAll, 2 * time.Second, watchdog.ErrMaxHold}, // before its first renewal
		{lease, answerNothing, trusted, watchdog.ErrDeadline},             // the lease runs out before that
	} {
		inBubble(t, c.answer, func(t *testing.T, r *harness) {
			pass(time.Second) // the acquire took a second
			h := r.hold(watchdog.Terms{Anchor: r.began, Renew: true, MaxHold: c.most})
			pass(c.ends - time.Second - 1)
			r.lives(h, r.began.Add(c.ends))
			pass(1)
			r.ended(h, c.why, r.began.Add(c.ends))
			calls := r.calls()
			pass(lease)
			require.Equal(t, calls, r.calls())
		})
	}
}

func TestMaxHoldMayBeForever(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		pass(time.Second)
		h := r.hold(watchdog.Terms{Renew: true, MaxHold: math.MaxInt64})
		pass(10 * lease)
		require.True(t, h.Alive())
	})
}

func TestLeaseThatIsOverAlready(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		before := r.began.Add(-2 * lease)
		for _, terms := range []watchdog.Terms{
			{Anchor: before, Renew: true}, // ended before there was a watchdog
			{Anchor: before},
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
	r := newHarness(t, renewAll, watchdog.Config[*held]{})
	defer r.Close()
	require.Contains(t, r.hold(watchdog.Terms{}).Deadline().String(), "m=")
}

func TestG2_WhatIsOverIsNotRenewedThoughItsEndIsNotYetReported(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		for range 500 { // more than end at once
			r.hold(watchdog.Terms{Anchor: time.Now().Add(-lease), Renew: true})
		}
		synctest.Wait()
		require.Zero(t, r.calls())
	}, watchdog.Config[*held]{Batch: 1, Parallel: 1})
}
