package watchdog

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A hold ends by itself at the instant that its terms and the server's answers allow, and not before.
func TestG2_EndOfAHold(t *testing.T) {
	for name, c := range map[string]struct {
		terms  Terms
		server func(attempt)
		ends   time.Duration
		why    error
	}{
		"fixed": {Terms{Lease: 10 * time.Second}, renewAll, 9898 * time.Millisecond, ErrFixedLease},
		// The first renewal sets the expiry to one lease of the watchdog; its answer may be lost.
		"long first lease, no answer":  {Terms{Lease: 10 * lease, Renew: true}, answerNothing, trusted, ErrDeadline},
		"cap":                          {Terms{Renew: true, MaxHold: 45 * time.Second}, renewAll, 45 * time.Second, ErrMaxHold},
		"cap before the first renewal": {Terms{Renew: true, MaxHold: 2 * time.Second}, renewAll, 2 * time.Second, ErrMaxHold},
		"cap after the lease":          {Terms{Renew: true, MaxHold: lease}, answerNothing, trusted, ErrDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, c.server, func(t *testing.T, r *harness) {
				pass(time.Second) // the acquire took a second
				c.terms.Anchor = r.began
				h := r.hold(c.terms)
				pass(c.ends - time.Second - 1)
				r.lives(h, c.ends)
				pass(1)
				r.ended(h, c.why, c.ends)
				require.Equal(t, r.began.Add(c.ends), h.Deadline(), "an ended lease keeps its deadline")
				require.False(t, r.Forget(h))
				calls := len(r.made())
				pass(lease)
				require.Len(t, r.made(), calls)
				require.True(t, c.terms.Renew || calls == 0)
			})
		})
	}
}

func TestMaxHoldMayBeForever(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		pass(time.Second)
		h := r.hold(Terms{Renew: true, MaxHold: math.MaxInt64})
		pass(10 * lease)
		require.True(t, h.Alive())
	})
}

func TestLeaseThatIsOverAlready(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		before := r.began.Add(-2 * lease)
		for _, c := range []struct {
			terms Terms
			why   error
		}{
			{Terms{Anchor: before, Renew: true}, ErrDeadline}, // ended before there was a watchdog
			{Terms{Anchor: before}, ErrFixedLease},
			{Terms{Lease: time.Millisecond, Renew: true}, ErrDeadline}, // shorter than its margin
		} {
			h := r.hold(c.terms)
			require.False(t, h.Alive())
			require.False(t, h.Deadline().After(time.Now()))
			synctest.Wait()
			r.ended(h, c.why, 0)
		}
		require.Empty(t, r.made())
	})
}

func TestLeaseBeforeWatch(t *testing.T) {
	var l Lease
	require.False(t, l.Alive())
	require.True(t, l.Deadline().IsZero())
}

func TestDeadlineKeepsTheMonotonicReading(t *testing.T) {
	r := newHarness(t, renewAll, Config[*held]{})
	defer r.Close()
	require.Contains(t, r.hold(Terms{}).Deadline().String(), "m=")
}

func TestG2_WhatIsOverIsNotRenewedThoughItsEndIsNotYetReported(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		for range 500 { // more than end at once
			r.hold(Terms{Anchor: time.Now().Add(-lease), Renew: true})
		}
		synctest.Wait()
		require.Empty(t, r.made())
	}, Config[*held]{batch: 1, parallel: 1})
}
