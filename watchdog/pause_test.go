package watchdog_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/watchdog"
)

// stall keeps the scheduler from running, as a stopped process would, for d from now on.
func (r *harness) stall(d time.Duration) {
	anchor := time.Now().Add(watchdog.Margin(time.Second) - time.Second)
	h := &held{id: -1, onLoss: func() { time.Sleep(d) }}
	r.Watch(h, watchdog.Terms{Anchor: anchor, Lease: time.Second})
	synctest.Wait()
}

func TestF2_AfterAPauseHoldsAreEndedAndNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{Batch: 10})
		defer r.Close()
		begin := time.Now()
		var holds []*held
		for range 35 { // more than one batch
			holds = append(holds, r.hold(watchdog.Terms{}))
		}
		r.stall(lease + time.Second)
		pass(trusted)
		for _, h := range holds {
			require.False(t, h.Alive(), "the clock alone ends a lease")
			require.Equal(t, begin.Add(trusted), h.Deadline())
		}
		pass(lease)
		for _, h := range holds {
			r.ended(h, watchdog.ErrDeadline, begin.Add(lease+time.Second))
		}
		require.Zero(t, r.calls())
	})
}

func TestF2_AfterAShortPauseHoldsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, renewAll, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{})
		r.stall(trusted - 1)
		pass(lease)
		r.lives(h, begin.Add(2*trusted-1))
	})
}

func TestG2_LateYesRevivesNothingThoughTheEndIsNotYetReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		r := newRig(t, func(_ context.Context, _ int, _ []*held, answers []watchdog.Answer) {
			<-hang
			all(answers, watchdog.Renewed)
		}, watchdog.Config[*held]{})
		defer r.Close()
		begin := time.Now()
		h := r.hold(watchdog.Terms{})
		pass(lease / 3)
		r.stall(lease)
		pass(trusted - lease/3)
		close(hang)
		synctest.Wait()
		require.False(t, h.Alive())
		require.Equal(t, begin.Add(trusted), h.Deadline())
		pass(lease)
		r.ended(h, watchdog.ErrDeadline, begin.Add(lease/3+lease))
		require.Equal(t, 1, r.calls())
	})
}
