package watchdog_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/watchdog"
)

func TestLeaseIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(watchdog.Lease{}), uintptr(56))
}

// take watches n holds, evenly spread over the given time.
func (r *harness) take(n int, over time.Duration) []*held {
	holds := make([]*held, n)
	for i := range holds {
		holds[i] = r.hold(watchdog.Terms{})
		pass(over / time.Duration(n))
	}
	return holds
}

func TestThousandsOfLeasesFillTheirBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20_000
		largest := 0
		r := newRig(t, func(_ context.Context, _ int, holds []*held, answers []watchdog.Answer) {
			time.Sleep(20 * time.Millisecond)
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{})
		defer r.Close()
		goroutines := runtime.NumGoroutine()
		begin := time.Now()
		holds := r.take(n, lease/3)
		for range 20 {
			require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+8)
			pass(lease / 6)
		}
		tries := map[*held]int{}
		for _, a := range r.attempts {
			largest = max(largest, len(a.holds))
			for _, h := range a.holds {
				tries[h]++
			}
		}
		rounds := int(time.Since(begin) / (lease / 3))
		require.Equal(t, 100, largest)
		require.LessOrEqual(t, len(r.attempts), rounds*n/100*115/100, "batches of less than 87 on average")
		for _, h := range holds {
			require.True(t, h.Alive())
			require.InDelta(t, rounds, tries[h], 2)
		}
	})
}

func TestWhatIsDueSoonFollowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 10 * time.Millisecond
		r := newRig(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
			time.Sleep(took)
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{Parallel: 2})
		defer r.Close()
		begin := time.Now()
		holds := r.take(500, lease/30)
		pass(1)
		later := r.hold(watchdog.Terms{})
		pass(lease/3 + lease/60)
		var at []time.Duration
		for i := 0; i < 500; i += 100 {
			at = append(at, r.starts(holds[i], begin)[0]-lease/3)
		}
		require.Equal(t, []time.Duration{0, 0, took, took, 2 * took}, at)
		require.Equal(t, lease/3+lease/30+1, r.starts(later, begin)[0])

		begin = time.Now()
		own := r.hold(watchdog.Terms{Lease: time.Second, Renew: true})
		pass(lease / 30)
		require.Equal(t, time.Second/3, r.starts(own, begin)[0], "nothing else is due")
	})
}

func TestHoldsOfOneInstantAreNotRenewedOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, answerNothing, watchdog.Config[*held]{Parallel: 20})
		defer r.Close()
		r.take(500, time.Second/10)
		pass(lease / 3)
		require.Equal(t, 5, r.calls())
		pass(lease / 40) // since the first attempts: each batch has tried again, once or twice
		require.GreaterOrEqual(t, r.calls(), 10)
		require.LessOrEqual(t, r.calls(), 15, "a batch that failed tries again as one")
	})
}

// A server that is away is asked a few times a second, however many leases there are, and soon has renewed all when it is
// back.
func TestG3_ManyLeasesTryAgainWithoutAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const parallel, away, back = 8, lease / 3 * 2, lease - lease/10
		begin := time.Now()
		r := newRig(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
			time.Sleep(time.Millisecond)
			if time.Since(begin) >= back {
				all(answers, watchdog.Renewed)
			}
		}, watchdog.Config[*held]{Parallel: parallel})
		defer r.Close()
		var holds []*held
		for range 20_000 {
			holds = append(holds, r.hold(watchdog.Terms{}))
		}
		pass(away)
		first := r.calls()
		pass(back - away)
		seconds := int((back - away) / time.Second)
		require.GreaterOrEqual(t, r.calls()-first, seconds)
		require.LessOrEqual(t, r.calls()-first, 4*parallel*seconds)
		pass(2 * time.Second)
		for _, h := range holds {
			require.NoError(t, h.why)
			require.True(t, h.Deadline().After(begin.Add(lease)))
		}
	})
}

// What is due for the first time does not wait for those that try again.
func TestG9_HoldsThatTryAgainDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(_ context.Context, _ int, holds []*held, answers []watchdog.Answer) {
			if holds[0].id == 500 {
				all(answers, watchdog.Renewed)
			}
		}, watchdog.Config[*held]{Batch: 1})
		defer r.Close()
		for range 500 {
			r.hold(watchdog.Terms{})
		}
		pass(lease / 3)
		begin := time.Now()
		other := r.hold(watchdog.Terms{Anchor: begin.Add(time.Second - lease/3), Renew: true})
		pass(2 * time.Second)
		at := r.starts(other, begin)
		require.Len(t, at, 1)
		require.LessOrEqual(t, at[0], time.Second)
	})
}

func TestHoldsThatWaitToTryAgainAreNotTakenAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, answerNothing, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		failed := r.hold(watchdog.Terms{})
		var soon []*held
		for range 5 {
			pass(lease / 200)
			soon = append(soon, r.hold(watchdog.Terms{}))
		}
		pass(lease / 3)
		for _, h := range soon {
			require.Equal(t, lease/3, r.starts(h, begin)[0], "taken along")
		}

		// Others become due all the time while failed waits.
		for range 40 {
			r.hold(watchdog.Terms{Lease: lease / 100, Renew: true})
			pass(lease / 300)
		}
		at := r.starts(failed, begin)
		require.Greater(t, len(at), 2)
		require.GreaterOrEqual(t, at[1]-at[0], lease/120)
		require.GreaterOrEqual(t, at[2]-at[1], time.Second/3)
	})
}

func TestG2_ManyEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, answerNothing, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		var holds []*held
		for range 5000 {
			holds = append(holds, r.hold(watchdog.Terms{Lease: time.Second}))
		}
		pass(time.Second)
		for _, h := range holds {
			r.ended(h, watchdog.ErrFixedLease, begin.Add(988*time.Millisecond))
		}
	})
}
