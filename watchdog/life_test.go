package watchdog

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestForgetAfterTheDeadlineBeforeItIsReported(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		h := r.hold(Terms{})
		r.stall(2 * lease)
		pass(trusted)
		require.False(t, r.Forget(h))
		require.False(t, r.Forget(&held{}), "never watched")
		pass(3 * lease)
		require.NoError(t, h.why)
	})
}

func TestEndedMayWatchAndForget(t *testing.T) {
	for _, renew := range []bool{false, true} { // ends by the scheduler, by a call
		inBubble(t, func(c attempt) {
			c.all(Renewed)
			if renew && c.n == 0 {
				c.all(NotOurs)
			}
		}, func(t *testing.T, r *harness) {
			other, next := &held{id: 2}, &held{id: 3}
			h := &held{id: 1, onLoss: func() {
				r.Forget(other)
				r.Watch(next, Terms{Anchor: time.Now(), Lease: lease, Renew: true})
			}}
			r.Watch(h, Terms{Anchor: time.Now(), Lease: 20 * time.Second, Renew: renew})
			pass(time.Second)
			r.Watch(other, Terms{Anchor: time.Now(), Lease: lease, Renew: true})
			pass(10 * lease)
			require.Equal(t, []bool{false, false, true}, []bool{h.Alive(), other.Alive(), next.Alive()})
		})
	}
}

func TestCloseCancelsCallsAndWaitsForThem(t *testing.T) {
	for _, answer := range []Answer{Unanswered, Renewed, NotOurs} {
		inBubble(t, func(c attempt) {
			<-c.ctx.Done()
			time.Sleep(time.Second)
			c.all(answer)
		}, func(t *testing.T, r *harness) {
			h, other := r.hold(Terms{}), r.hold(Terms{})
			pass(lease / 3)
			require.Len(t, r.made(), 1)
			r.Close()
			require.Equal(t, lease/3+time.Second, time.Since(r.began))

			require.True(t, r.Forget(other))
			require.False(t, other.Alive())
			r.lives(h, trusted)
			late := r.hold(Terms{Lease: time.Second, Renew: true})
			require.True(t, late.Alive())
			pass(time.Until(r.began.Add(trusted)) - 1)
			require.True(t, h.Alive())
			require.False(t, late.Alive())
			pass(1)
			require.False(t, h.Alive())
			require.False(t, r.Forget(h))
			require.NoError(t, h.why)
			require.NoError(t, late.why)
			require.Len(t, r.made(), 1)
		}) // and closes again
	}
}

func TestMisuse(t *testing.T) {
	inBubble(t, renewAll, func(t *testing.T, r *harness) {
		h := r.hold(Terms{})
		again := func() { r.Watch(h, Terms{Anchor: time.Now(), Lease: lease}) }
		require.Panics(t, again)
		r.Forget(h)
		require.Panics(t, again)
	})
	renew := func(context.Context, []*held, []Answer) {}
	ended := func(*held, error) {}
	for _, c := range []Config[*held]{
		{Renew: renew, Ended: ended},
		{Lease: -1, Renew: renew, Ended: ended},
		{Lease: lease, Ended: ended},
		{Lease: lease, Renew: renew},
	} {
		require.Panics(t, func() { New(c) })
	}
}
