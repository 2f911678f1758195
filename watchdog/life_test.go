package watchdog_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/watchdog"
)

func TestForgetEndsALeaseQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		renewed, fixed := r.hold(watchdog.Terms{}), r.hold(watchdog.Terms{Lease: lease})
		for _, h := range []*held{renewed, fixed} {
			require.True(t, r.Forget(h))
			require.False(t, h.Alive())
			require.False(t, r.Forget(h))
		}
		require.False(t, r.Forget(&held{}))
		pass(2 * lease)
		require.Zero(t, r.calls())
		require.NoError(t, renewed.why)
		require.NoError(t, fixed.why)
	})
}

func TestForgetAfterTheDeadlineBeforeItIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		h := r.hold(watchdog.Terms{})
		r.stall(2 * lease)
		pass(trusted)
		require.False(t, r.Forget(h))
		pass(3 * lease)
		require.NoError(t, h.why)
	})
}

func TestForgetDuringARenewal(t *testing.T) {
	for _, answer := range []watchdog.Answer{watchdog.Unknown, watchdog.Renewed, watchdog.NotOurs} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
				time.Sleep(2 * time.Second)
				all(answers, answer)
			}, watchdog.Config[*held]{})
			defer r.Close()
			begin := time.Now()
			h := r.hold(watchdog.Terms{})
			pass(lease/3 + time.Second)
			require.Equal(t, 1, r.calls())
			require.True(t, r.Forget(h))
			pass(2 * lease)
			require.NoError(t, h.why)
			require.False(t, h.Alive())
			require.Equal(t, begin.Add(trusted), h.Deadline())
			require.Equal(t, 1, r.calls())
		})
	}
}

func TestEndedMayWatchAndForget(t *testing.T) {
	for _, renew := range []bool{false, true} { // ends by the scheduler, by a call
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(_ context.Context, n int, _ []*held, answers []watchdog.Answer) {
				all(answers, watchdog.Renewed)
				if renew && n == 0 {
					all(answers, watchdog.NotOurs)
				}
			}, watchdog.Config[*held]{})
			other, next := &held{id: 2}, &held{id: 3}
			h := &held{id: 1, onLoss: func() {
				r.Forget(other)
				r.Watch(next, watchdog.Terms{Anchor: time.Now(), Lease: lease, Renew: true})
			}}
			r.Watch(h, watchdog.Terms{Anchor: time.Now(), Lease: 20 * time.Second, Renew: renew})
			pass(time.Second)
			r.Watch(other, watchdog.Terms{Anchor: time.Now(), Lease: lease, Renew: true})
			pass(10 * lease)
			require.False(t, h.Alive())
			require.False(t, other.Alive())
			require.True(t, next.Alive())
			r.Close()
		})
	}
}

func TestCloseCancelsCallsAndWaitsForThem(t *testing.T) {
	for _, answer := range []watchdog.Answer{watchdog.Unknown, watchdog.Renewed, watchdog.NotOurs} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(ctx context.Context, _ int, _ []*held, answers []watchdog.Answer) {
				<-ctx.Done()
				time.Sleep(time.Second)
				all(answers, answer)
			}, watchdog.Config[*held]{})
			begin := time.Now()
			h := r.hold(watchdog.Terms{})
			pass(lease / 3)
			require.Equal(t, 1, r.calls())
			r.Close()
			require.Equal(t, lease/3+time.Second, time.Since(begin))

			r.lives(h, begin.Add(trusted))
			late := r.hold(watchdog.Terms{Lease: time.Second, Renew: true})
			require.True(t, late.Alive())
			pass(time.Until(begin.Add(trusted)) - 1)
			require.True(t, h.Alive())
			require.False(t, late.Alive())
			pass(1)
			require.False(t, h.Alive())
			require.False(t, r.Forget(h))
			require.NoError(t, h.why)
			require.NoError(t, late.why)
			require.Equal(t, 1, r.calls())
			r.Close()
		})
	}
}

func TestForgetAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		h := r.hold(watchdog.Terms{})
		r.Close()
		require.True(t, r.Forget(h))
		require.False(t, h.Alive())
	})
}

func TestMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		h := r.hold(watchdog.Terms{})
		again := func() { r.Watch(h, watchdog.Terms{Anchor: time.Now(), Lease: lease}) }
		require.Panics(t, again)
		r.Forget(h)
		require.Panics(t, again)
	})
	renew := func(context.Context, []*held, []watchdog.Answer) {}
	ended := func(*held, error) {}
	for _, c := range []watchdog.Config[*held]{
		{Renew: renew, Ended: ended},
		{Lease: -1, Renew: renew, Ended: ended},
		{Lease: lease, Ended: ended},
		{Lease: lease, Renew: renew},
		{Lease: lease, Renew: renew, Ended: ended, Batch: -1},
		{Lease: lease, Renew: renew, Ended: ended, Parallel: -1},
	} {
		require.Panics(t, func() { watchdog.New(c) })
	}
}

// In real time, with the race detector: short leases, taken, looked at and forgotten by many.
func TestG2_ManyGoroutinesInRealTime(t *testing.T) {
	const short = 6 * time.Millisecond
	var ended, cut atomic.Int64
	r := newRig(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
		for i := range answers {
			answers[i] = watchdog.Answer(rand.N(5) % 3)
		}
		if rand.N(4) == 0 {
			time.Sleep(rand.N(short))
		}
	}, watchdog.Config[*held]{Lease: short, Batch: 3, Parallel: 3})
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for range 50 {
				told := make(chan struct{})
				h := &held{onLoss: func() { ended.Add(1); close(told) }}
				r.Watch(h, watchdog.Terms{Anchor: time.Now(), Lease: short, Renew: rand.N(4) > 0})
				for until, alive := time.Now().Add(rand.N(2*short)), true; time.Now().Before(until); {
					was := alive
					if alive = h.Alive(); alive && !was {
						t.Error("revived")
					}
				}
				alive := r.Forget(h)
				select {
				case <-told:
					if alive {
						t.Error("told of the end of a lease that was alive when forgotten")
					}
				default:
					cut.Add(1)
				}
			}
		})
	}
	users.Wait()
	r.Close()
	t.Logf("%d ended by themselves, %d did not", ended.Load(), cut.Load())
	require.Positive(t, ended.Load())
	require.Positive(t, cut.Load())
}
