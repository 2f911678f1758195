package watchdog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestG3_SilenceIsRetriedWithJitterUntilTheDeadline(t *testing.T) {
	first := map[time.Duration]bool{}
	for range 50 {
		inBubble(t, answerNothing, func(t *testing.T, r *harness) {
			h := r.hold(Terms{})
			pass(2 * lease)
			r.ended(h, ErrDeadline, trusted)

			at := r.starts(h)
			require.Equal(t, lease/3, at[0])
			require.GreaterOrEqual(t, len(at), 7)
			pause := lease / 60
			for i := 1; i < len(at); i++ {
				require.GreaterOrEqual(t, at[i]-at[i-1], pause/2)
				require.LessOrEqual(t, at[i]-at[i-1], pause*3/2)
				pause = min(2*pause, time.Second*2/3)
			}
			first[at[1]] = true
		})
	}
	require.Greater(t, len(first), 45, "no jitter")
}

// A server that is back little more than a second before the deadline is in time, whatever the lease.
func TestG3_BackASecondBeforeTheDeadline(t *testing.T) {
	for _, lease := range []time.Duration{lease, 10 * time.Minute} {
		away := lease - Margin(lease) - 1001*time.Millisecond
		for range 50 {
			inBubble(t, func(c attempt) {
				if time.Since(c.began) >= away {
					c.all(Renewed)
				}
			}, func(t *testing.T, r *harness) {
				h := r.hold(Terms{Renew: true, Lease: lease})
				pass(lease)
				require.True(t, h.Alive())
			}, Config[*held]{Lease: lease})
		}
	}
}

func TestG5_LostReplyIsMadeUpForByTheNextAttempt(t *testing.T) {
	for range 20 { // the pauses are random
		inBubble(t, func(c attempt) {
			if c.n == 2 {
				c.all(Renewed)
			}
		}, func(t *testing.T, r *harness) {
			h := r.hold(Terms{})
			pass(lease / 3)
			r.lives(h, trusted) // the server has renewed, but nobody knows
			pass(lease/40 + lease/20)
			at := r.starts(h)
			require.Len(t, at, 3)
			r.lives(h, at[2]+trusted)

			pass(lease/3 + lease/40)
			at = r.starts(h)
			require.GreaterOrEqual(t, len(at), 5)
			require.Equal(t, at[2]+lease/3, at[3], "the back-off is over")
			require.LessOrEqual(t, at[4]-at[3], lease/40, "the next one starts small")
		})
	}
}

func TestG9_HungCallIsGivenUpAtItsLimit(t *testing.T) {
	for _, late := range []Answer{Unanswered, Renewed, NotOurs} {
		inBubble(t, func(c attempt) {
			if c.n == 0 { // a dial that knows no context
				<-c.hang
				c.all(late)
			}
		}, func(t *testing.T, r *harness) {
			h := r.hold(Terms{})
			pass(lease/3 + limit)
			ends, _ := r.made()[0].ctx.Deadline()
			require.Equal(t, r.began.Add(lease/3+limit), ends)
			require.Len(t, r.starts(h), 1)
			pass(lease / 40)
			require.Greater(t, len(r.starts(h)), 1, "tried again beside the call that hangs")

			pass(time.Second)
			now := time.Since(r.began)
			tried := len(r.starts(h))
			r.answer()
			switch late {
			case Unanswered:
				r.lives(h, trusted)
			case Renewed:
				r.lives(h, lease/3+trusted) // from its own start
				pass(2*lease/3 - now)
				require.Equal(t, []time.Duration{2 * lease / 3}, r.starts(h)[tried:], "the back-off is over")
			case NotOurs:
				r.ended(h, ErrNotOurs, now)
			}
		})
	}
}

func TestLateYesOfAnOldCallDoesNotHastenTheNextRenewal(t *testing.T) {
	inBubble(t, func(c attempt) {
		if c.n == 0 {
			<-c.hang
		}
		c.all(Renewed)
	}, func(t *testing.T, r *harness) {
		h := r.hold(Terms{})
		pass(lease/3 + limit + lease/40)
		at := r.starts(h)
		require.Len(t, at, 2)
		r.lives(h, at[1]+trusted)
		r.answer()
		r.lives(h, at[1]+trusted)
		pass(lease / 3)
		require.Equal(t, at[1]+lease/3, r.starts(h)[2])
	})
}

func TestG2_DeadlinesAreKeptWhenEveryCallHangs(t *testing.T) {
	inBubble(t, func(c attempt) {
		if c.n < 2 {
			<-c.hang
		}
		c.all(Renewed)
	}, func(t *testing.T, r *harness) {
		renewed := r.take(3, 0)
		fixed := r.hold(Terms{Lease: 20 * time.Second})
		capped := r.hold(Terms{Renew: true, MaxHold: 25 * time.Second})
		pass(lease / 2)
		late := r.hold(Terms{})
		pass(lease/2 + time.Second)
		for _, h := range renewed {
			r.ended(h, ErrDeadline, trusted)
		}
		r.ended(fixed, ErrFixedLease, 20*time.Second-202*time.Millisecond)
		r.ended(capped, ErrMaxHold, 25*time.Second)
		require.Len(t, r.made(), 2)

		require.True(t, late.Alive()) // has been due for a while
		r.answer()
		r.lives(late, lease+time.Second+trusted)
		for _, h := range renewed {
			require.False(t, h.Alive(), "a late answer revives nothing")
		}
	}, Config[*held]{batch: 1, parallel: 2})
}

// stall keeps the scheduler from running, as a stopped process would, for d from now on.
func (r *harness) stall(d time.Duration) {
	anchor := time.Now().Add(Margin(time.Second) - time.Second)
	h := &held{id: -1, onLoss: func() { time.Sleep(d) }}
	r.Watch(h, Terms{Anchor: anchor, Lease: time.Second})
	synctest.Wait()
}

func TestF2_AfterAPauseHoldsAreEndedAndNotRenewed(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		holds := r.take(35, 0) // more than one batch
		r.stall(lease + time.Second)
		pass(trusted)
		for _, h := range holds {
			require.False(t, h.Alive(), "the clock alone ends a lease")
			require.Equal(t, r.began.Add(trusted), h.Deadline())
		}
		pass(lease)
		for _, h := range holds {
			r.ended(h, ErrDeadline, lease+time.Second)
		}
		require.Empty(t, r.made())
	}, Config[*held]{batch: 10})
}

func TestF2_AfterAShortPauseHoldsAreRenewed(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		h := r.hold(Terms{})
		r.stall(trusted - 1)
		pass(lease)
		r.lives(h, 2*trusted-1)
	})
}

func TestG2_LateYesRevivesNothingThoughTheEndIsNotYetReported(t *testing.T) {
	inBubble(t, func(c attempt) {
		<-c.hang
		c.all(Renewed)
	}, func(t *testing.T, r *harness) {
		h := r.hold(Terms{})
		pass(lease / 3)
		r.stall(lease)
		pass(trusted - lease/3)
		r.answer()
		require.False(t, h.Alive())
		require.Equal(t, r.began.Add(trusted), h.Deadline())
		pass(lease)
		r.ended(h, ErrDeadline, lease/3+lease)
		require.Len(t, r.made(), 1)
	})
}
