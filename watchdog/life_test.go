package watchdog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/watchdog"
)

func TestForgetEndsALeaseQuietly(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
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
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
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
		inBubble(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
			time.Sleep(2 * time.Second)
			all(answers, answer)
		}, func(t *testing.T, r *harness) {
			h := r.hold(watchdog.Terms{})
			pass(lease/3 + time.Second)
			require.Equal(t, 1, r.calls())
			require.True(t, r.Forget(h))
			pass(2 * lease)
			require.NoError(t, h.why)
			require.False(t, h.Alive())
			require.Equal(t, r.began.Add(trusted), h.Deadline())
			require.Equal(t, 1, r.calls())
		})
	}
}

func TestEndedMayWatchAndForget(t *testing.T) {
	for _, renew := range []bool{false, true} { // ends by the scheduler, by a call
		synctest.Test(t, func(t *testing.T) {
			r := newHarness(t, func(_ context.Context, n int, _ []*held, answers []watchdog.Answer) {
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
			r := newHarness(t, func(ctx context.Context, _ int, _ []*held, answers []watchdog.Answer) {
				<-ctx.Done()
				time.Sleep(time.Second)
				all(answers, answer)
			}, watchdog.Config[*held]{})
			h, other := r.hold(watchdog.Terms{}), r.hold(watchdog.Terms{})
			pass(lease / 3)
			require.Equal(t, 1, r.calls())
			r.Close()
			require.Equal(t, lease/3+time.Second, time.Since(r.began))

			require.True(t, r.Forget(other))
			require.False(t, other.Alive())
			r.lives(h, r.began.Add(trusted))
			late := r.hold(watchdog.Terms{Lease: time.Second, Renew: true})
			require.True(t, late.Alive())
			pass(time.Until(r.began.Add(trusted)) - 1)
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

func TestMisuse(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
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
