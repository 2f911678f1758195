package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	registerFair("F4_CancelledInARun", testCancelledInARun)
	registerFair("F4_CancelledWhileConfirming", testCancelledWhileConfirming)
}

// A run is granted to the locker: to four of its waiters, of which the second and
// the third are cancelled after 0 to 3 ms, in steps of 20 µs, while the key is
// released at half that time. The others are served in their order, and then the
// other client; nothing is left.
func testCancelledInARun(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, Fencing: true})
	const most = 3 * time.Millisecond
	cancelled := 0
	for delay := time.Duration(0); delay <= most; delay += 20 * time.Microsecond {
		before := Lock(t, r.Other, Bounded(t), "k")
		last := before.Fence()
		ctx, cancel := context.WithCancel(Bounded(t))
		var waits []<-chan Acquired
		for i := range 4 {
			c := Bounded(t)
			if i == 1 || i == 2 {
				c = ctx
			}
			waits = append(waits, r.InLine(c, "k", i+1))
		}
		behind := GoLock(r.Other, Bounded(t), "k")
		Await(t, func() bool { return len(Queued(t, r.Server, "k")) == 5 })
		time.AfterFunc(delay, cancel)
		released := make(chan error, 1)
		time.AfterFunc(most/2, func() { released <- before.Unlock(Bounded(t)) })

		for i, w := range append(waits, behind) {
			a := Within(t, w)
			if (i == 1 || i == 2) && a.Err != nil {
				cancelled++
				require.ErrorIs(t, a.Err, context.Canceled)
				continue
			}
			require.NoError(t, a.Err)
			require.Greater(t, a.Lease.Fence(), last, "overtaken")
			last = a.Lease.Fence()
			require.NoError(t, a.Lease.Unlock(Bounded(t)))
		}
		require.NoError(t, Within(t, released))
	}
	require.Greater(t, cancelled, 50)
	r.Tidy("k")
}

// The grant has to be confirmed, as the waiter asks for a lease of its own. It is
// cancelled while that call is on its way, or its answer.
func testCancelledWhileConfirming(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, FirstLease: Long})
	for key, set := range map[string]func(redistest.Hook){"request": r.Proxy.OnRequest, "reply": r.Proxy.OnReply} {
		before := Lock(t, r.Other, Bounded(t), key)
		ctx, cancel := context.WithCancel(Bounded(t))
		going := r.InLine(ctx, key, 1, holdfast.FixedLease(time.Hour))
		staying := r.InLine(Bounded(t), key, 2, holdfast.FixedLease(time.Hour))
		hook, held := Holding("confirm")
		set(hook)
		require.NoError(t, before.Unlock(Bounded(t)))
		Within(t, held)
		cancel()
		require.ErrorIs(t, Within(t, going).Err, context.Canceled)
		set(nil)
		r.Proxy.Release()
		l := Got(t, staying)
		require.Equal(t, l.Owner(), r.Owner(key))
		require.NoError(t, l.Unlock(Bounded(t)))
	}
	r.Tidy("request")
	r.Tidy("reply")
}
