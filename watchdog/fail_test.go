package watchdog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/watchdog"
)

func TestG3_NotOursEndsOneOfABatchAtOnce(t *testing.T) {
	const lost = 4
	inBubble(t, func(_ context.Context, _ int, holds []*held, answers []watchdog.Answer) {
		time.Sleep(time.Second)
		for i, h := range holds {
			answers[i] = watchdog.Renewed
			if h.id == lost {
				answers[i] = watchdog.NotOurs
			}
		}
	}, func(t *testing.T, r *harness) {
		holds := r.take(10, 0)
		pass(lease/3 + time.Second)
		require.Equal(t, 1, r.calls())
		r.ended(holds[lost], watchdog.ErrNotOurs, r.began.Add(lease/3+time.Second))
		require.False(t, r.Forget(holds[lost]))
		pass(3 * lease)
		for _, h := range holds {
			require.Equal(t, h.id != lost, h.Alive())
		}
		require.Len(t, r.starts(holds[lost]), 1)
	})
}

func TestG3_SilenceIsRetriedWithJitterUntilTheDeadline(t *testing.T) {
	first := map[time.Duration]bool{}
	for range 50 {
		inBubble(t, answerNothing, func(t *testing.T, r *harness) {
			h := r.hold(watchdog.Terms{})
			pass(2 * lease)
			r.ended(h, watchdog.ErrDeadline, r.began.Add(trusted))

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
		for range 50 {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				back := begin.Add(lease - watchdog.Margin(lease) - 1001*time.Millisecond)
				r := newHarness(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
					if !time.Now().Before(back) {
						all(answers, watchdog.Renewed)
					}
				}, watchdog.Config[*held]{Lease: lease})
				defer r.Close()
				h := r.hold(watchdog.Terms{Renew: true, Lease: lease})
				pass(lease)
				require.True(t, h.Alive())
			})
		}
	}
}

func TestG5_LostReplyIsMadeUpForByTheNextAttempt(t *testing.T) {
	for range 20 { // the pauses are random
		inBubble(t, func(_ context.Context, n int, _ []*held, answers []watchdog.Answer) {
			if n == 2 {
				all(answers, watchdog.Renewed)
			}
		}, func(t *testing.T, r *harness) {
			h := r.hold(watchdog.Terms{})
			pass(lease / 3)
			r.lives(h, r.began.Add(trusted)) // the server has renewed, but nobody knows
			pass(lease/40 + lease/20)
			at := r.starts(h)
			require.Len(t, at, 3)
			r.lives(h, r.began.Add(at[2]+trusted))

			pass(lease/3 + lease/40)
			at = r.starts(h)
			require.GreaterOrEqual(t, len(at), 5)
			require.Equal(t, at[2]+lease/3, at[3], "the back-off is over")
			require.LessOrEqual(t, at[4]-at[3], lease/40, "the next one starts small")
		})
	}
}

func TestG9_HungCallIsGivenUpAtItsLimit(t *testing.T) {
	for _, late := range []watchdog.Answer{watchdog.Unknown, watchdog.Renewed, watchdog.NotOurs} {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			r := newHarness(t, func(ctx context.Context, n int, _ []*held, answers []watchdog.Answer) {
				if n == 0 { // a dial that knows no context
					<-hang
					all(answers, late)
				}
			}, watchdog.Config[*held]{})
			defer r.Close()
			h := r.hold(watchdog.Terms{})
			pass(lease/3 + limit)
			require.Equal(t, r.began.Add(lease/3+limit), r.attempts[0].limit)
			require.Len(t, r.starts(h), 1)
			pass(lease / 40)
			require.Greater(t, len(r.starts(h)), 1, "tried again beside the call that hangs")

			pass(time.Second)
			now := time.Now()
			tried := len(r.starts(h))
			close(hang)
			synctest.Wait()
			switch late {
			case watchdog.Unknown:
				r.lives(h, r.began.Add(trusted))
			case watchdog.Renewed:
				r.lives(h, r.began.Add(lease/3+trusted)) // from its own start
				pass(r.began.Add(2 * lease / 3).Sub(now))
				at := r.starts(h)[tried:]
				require.Equal(t, []time.Duration{2 * lease / 3}, at, "the back-off is over")
			case watchdog.NotOurs:
				r.ended(h, watchdog.ErrNotOurs, now)
			}
		})
	}
}

func TestLateYesOfAnOldCallDoesNotHastenTheNextRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		r := newHarness(t, func(_ context.Context, n int, _ []*held, answers []watchdog.Answer) {
			if n == 0 {
				<-hang
			}
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{})
		defer r.Close()
		h := r.hold(watchdog.Terms{})
		pass(lease/3 + limit + lease/40)
		at := r.starts(h)
		require.Len(t, at, 2)
		r.lives(h, r.began.Add(at[1]+trusted))
		close(hang)
		synctest.Wait()
		r.lives(h, r.began.Add(at[1]+trusted))
		pass(lease / 3)
		require.Equal(t, at[1]+lease/3, r.starts(h)[2])
	})
}

func TestG2_DeadlinesAreKeptWhenEveryCallHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		r := newHarness(t, func(_ context.Context, n int, _ []*held, answers []watchdog.Answer) {
			if n < 2 {
				<-hang
			}
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{Batch: 1, Parallel: 2})
		defer r.Close()
		a, b, c := r.hold(watchdog.Terms{}), r.hold(watchdog.Terms{}), r.hold(watchdog.Terms{})
		fixed := r.hold(watchdog.Terms{Lease: 20 * time.Second})
		capped := r.hold(watchdog.Terms{Renew: true, MaxHold: 25 * time.Second})
		pass(lease / 2)
		late := r.hold(watchdog.Terms{})
		pass(lease/2 + time.Second)
		for _, h := range []*held{a, b, c} {
			r.ended(h, watchdog.ErrDeadline, r.began.Add(trusted))
		}
		r.ended(fixed, watchdog.ErrFixedLease, r.began.Add(20*time.Second-202*time.Millisecond))
		r.ended(capped, watchdog.ErrMaxHold, r.began.Add(25*time.Second))
		require.Equal(t, 2, r.calls())

		require.True(t, late.Alive()) // has been due for a while
		now := time.Now()
		close(hang)
		synctest.Wait()
		r.lives(late, now.Add(trusted))
		for _, h := range []*held{a, b, c} {
			require.False(t, h.Alive(), "a late answer revives nothing")
		}
	})
}

// stall keeps the scheduler from running, as a stopped process would, for d from now on.
func (r *harness) stall(d time.Duration) {
	anchor := time.Now().Add(watchdog.Margin(time.Second) - time.Second)
	h := &held{id: -1, onLoss: func() { time.Sleep(d) }}
	r.Watch(h, watchdog.Terms{Anchor: anchor, Lease: time.Second})
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
			r.ended(h, watchdog.ErrDeadline, r.began.Add(lease+time.Second))
		}
		require.Zero(t, r.calls())
	}, watchdog.Config[*held]{Batch: 10})
}

func TestF2_AfterAShortPauseHoldsAreRenewed(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		h := r.hold(watchdog.Terms{})
		r.stall(trusted - 1)
		pass(lease)
		r.lives(h, r.began.Add(2*trusted-1))
	})
}

func TestG2_LateYesRevivesNothingThoughTheEndIsNotYetReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		r := newHarness(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
			<-hang
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{})
		defer r.Close()
		h := r.hold(watchdog.Terms{})
		pass(lease / 3)
		r.stall(lease)
		pass(trusted - lease/3)
		close(hang)
		synctest.Wait()
		require.False(t, h.Alive())
		require.Equal(t, r.began.Add(trusted), h.Deadline())
		pass(lease)
		r.ended(h, watchdog.ErrDeadline, r.began.Add(lease/3+lease))
		require.Equal(t, 1, r.calls())
	})
}
