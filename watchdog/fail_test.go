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
	synctest.Test(t, func(t *testing.T) {
		const lost = 4
		r := newRig(t, func(_ context.Context, _ int, holds []*held, answers []watchdog.Answer) {
			time.Sleep(time.Second)
			for i, h := range holds {
				answers[i] = watchdog.Renewed
				if h.id == lost {
					answers[i] = watchdog.NotOurs
				}
			}
		}, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		holds := make([]*held, 10)
		for i := range holds {
			holds[i] = r.hold(watchdog.Terms{})
		}
		pass(lease/3 + time.Second)
		require.Equal(t, 1, r.calls())
		r.ended(holds[lost], watchdog.ErrNotOurs, begin.Add(lease/3+time.Second))
		require.False(t, r.Forget(holds[lost]))
		pass(3 * lease)
		for _, h := range holds {
			require.Equal(t, h.id != lost, h.Alive())
		}
		require.Len(t, r.starts(holds[lost], begin), 1)
	})
}

func TestG3_SilenceIsRetriedWithJitterUntilTheDeadline(t *testing.T) {
	first := map[time.Duration]bool{}
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, answerNothing, watchdog.Config[*held]{})
			defer r.Close()
			begin := time.Now()
			h := r.hold(watchdog.Terms{})
			pass(2 * lease)
			r.ended(h, watchdog.ErrDeadline, begin.Add(trusted))

			at := r.starts(h, begin)
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
				r := newRig(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
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
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(_ context.Context, n int, _ []*held, answers []watchdog.Answer) {
			if n == 2 {
				all(answers, watchdog.Renewed)
			}
		}, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{})
		pass(lease / 3)
		r.lives(h, begin.Add(trusted)) // the server has renewed, but nobody knows
		pass(lease/40 + lease/20)
		at := r.starts(h, begin)
		require.Len(t, at, 3)
		r.lives(h, begin.Add(at[2]+trusted))

		pass(lease/3 + lease/40)
		at = r.starts(h, begin)
		require.GreaterOrEqual(t, len(at), 5)
		require.Equal(t, at[2]+lease/3, at[3], "the back-off is over")
		require.LessOrEqual(t, at[4]-at[3], lease/40, "the next one starts small")
	})
}

func TestG9_SlowCallDelaysNoOtherBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(ctx context.Context, n int, _ []*held, answers []watchdog.Answer) {
			if n == 0 {
				time.Sleep(limit - 1)
			}
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{Batch: 1, Parallel: 2})
		defer r.Close()
		begin := time.Now()
		var holds []*held
		for range 20 {
			holds = append(holds, r.hold(watchdog.Terms{}))
		}
		pass(lease / 3)
		require.Equal(t, 20, r.calls(), "nineteen went through the other place")
		pass(limit)
		for _, h := range holds {
			r.lives(h, begin.Add(lease/3+trusted))
			require.Len(t, r.starts(h, begin), 1)
		}
	})
}

func TestG9_HungCallIsGivenUpAtItsLimit(t *testing.T) {
	for _, late := range []watchdog.Answer{watchdog.Unknown, watchdog.Renewed, watchdog.NotOurs} {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			r := newRig(t, func(ctx context.Context, n int, _ []*held, answers []watchdog.Answer) {
				if n == 0 { // a dial that knows no context
					<-hang
					all(answers, late)
				}
			}, watchdog.Config[*held]{})
			defer r.Close()
			begin := time.Now()
			h := r.hold(watchdog.Terms{})
			pass(lease/3 + limit)
			require.Equal(t, begin.Add(lease/3+limit), r.attempts[0].limit)
			require.Len(t, r.starts(h, begin), 1)
			pass(lease / 40)
			require.Greater(t, len(r.starts(h, begin)), 1, "tried again beside the call that hangs")

			pass(time.Second)
			now := time.Now()
			tried := len(r.starts(h, begin))
			close(hang)
			synctest.Wait()
			switch late {
			case watchdog.Unknown:
				r.lives(h, begin.Add(trusted))
			case watchdog.Renewed:
				r.lives(h, begin.Add(lease/3+trusted)) // from its own start
				pass(begin.Add(2 * lease / 3).Sub(now))
				at := r.starts(h, begin)[tried:]
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
		r := newRig(t, func(_ context.Context, n int, _ []*held, answers []watchdog.Answer) {
			if n == 0 {
				<-hang
			}
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{})
		pass(lease/3 + limit + lease/40)
		at := r.starts(h, begin)
		require.Len(t, at, 2)
		r.lives(h, begin.Add(at[1]+trusted))
		close(hang)
		synctest.Wait()
		r.lives(h, begin.Add(at[1]+trusted))
		pass(lease / 3)
		require.Equal(t, at[1]+lease/3, r.starts(h, begin)[2])
	})
}

func TestLateYesBesideARetryInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		again := make(chan struct{})
		r := newRig(t, func(_ context.Context, n int, _ []*held, answers []watchdog.Answer) {
			switch n {
			case 0:
				<-hang
			case 1:
				<-again
			}
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{})
		pass(lease/3 + limit + lease/40)
		require.Equal(t, 2, r.calls())
		close(hang)
		synctest.Wait()
		r.lives(h, begin.Add(lease/3+trusted))
		pass(lease/8 - 1)
		require.Equal(t, 2, r.calls(), "attempts within their limit do not overlap")
		close(again)
		synctest.Wait()
		r.lives(h, begin.Add(r.starts(h, begin)[1]+trusted))
	})
}

func TestG2_DeadlinesAreKeptWhenEveryCallHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		r := newRig(t, func(_ context.Context, n int, _ []*held, answers []watchdog.Answer) {
			if n < 2 {
				<-hang
			}
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{Batch: 1, Parallel: 2})
		defer r.Close()
		begin := time.Now()
		a, b, c := r.hold(watchdog.Terms{}), r.hold(watchdog.Terms{}), r.hold(watchdog.Terms{})
		fixed := r.hold(watchdog.Terms{Lease: 20 * time.Second})
		capped := r.hold(watchdog.Terms{Renew: true, MaxHold: 25 * time.Second})
		pass(lease / 2)
		late := r.hold(watchdog.Terms{})
		pass(lease/2 + time.Second)
		for _, h := range []*held{a, b, c} {
			r.ended(h, watchdog.ErrDeadline, begin.Add(trusted))
		}
		r.ended(fixed, watchdog.ErrFixedLease, begin.Add(20*time.Second-202*time.Millisecond))
		r.ended(capped, watchdog.ErrMaxHold, begin.Add(25*time.Second))
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

func TestEachHoldOfABatchGoesItsOwnWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		says := []watchdog.Answer{watchdog.Unknown, watchdog.Renewed, watchdog.NotOurs, watchdog.Unknown, watchdog.Renewed}
		r := newRig(t, func(_ context.Context, n int, holds []*held, answers []watchdog.Answer) {
			for i, h := range holds {
				answers[i] = watchdog.Renewed
				if n == 0 {
					answers[i] = says[h.id]
				}
			}
		}, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		holds := r.take(len(says), 0)
		pass(lease/3 + lease/40)
		for i, h := range holds {
			switch says[i] {
			case watchdog.Unknown:
				require.Len(t, r.starts(h, begin), 2, "tried again")
			case watchdog.Renewed:
				require.Len(t, r.starts(h, begin), 1)
				r.lives(h, begin.Add(lease/3+trusted))
			case watchdog.NotOurs:
				r.ended(h, watchdog.ErrNotOurs, begin.Add(lease/3))
			}
		}
		pass(lease / 3)
		for i, h := range holds {
			if says[i] != watchdog.NotOurs {
				require.Greater(t, r.starts(h, begin)[len(r.starts(h, begin))-1], lease/2, "and in due course")
			}
		}
	})
}
