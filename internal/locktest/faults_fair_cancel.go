package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
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
	r := newFaultRig(t, d, Options{Lease: long, Fencing: true})
	const most = 3 * time.Millisecond
	cancelled := 0
	for delay := time.Duration(0); delay <= most; delay += 20 * time.Microsecond {
		before := lock(t, r.other, bounded(t), "k")
		last := before.Fence()
		ctx, cancel := context.WithCancel(bounded(t))
		var waits []<-chan acquired
		for i := range 4 {
			c := bounded(t)
			if i == 1 || i == 2 {
				c = ctx
			}
			waits = append(waits, r.inLine(c, "k", i+1))
		}
		behind := lockAside(r.other, bounded(t), "k")
		await(t, func() bool { return len(queued(t, r.server, "k")) == 5 })
		time.AfterFunc(delay, cancel)
		released := make(chan error, 1)
		time.AfterFunc(most/2, func() { released <- before.Unlock(bounded(t)) })

		for i, w := range append(waits, behind) {
			a := within(t, w)
			if (i == 1 || i == 2) && a.err != nil {
				cancelled++
				require.ErrorIs(t, a.err, context.Canceled)
				continue
			}
			require.NoError(t, a.err)
			require.Greater(t, a.lease.Fence(), last, "overtaken")
			last = a.lease.Fence()
			require.NoError(t, a.lease.Unlock(bounded(t)))
		}
		require.NoError(t, within(t, released))
	}
	require.Greater(t, cancelled, 50)
	r.tidy("k")
}

// The grant has to be confirmed, as the waiter asks for a lease of its own. It is
// cancelled while that call is on its way, or its answer.
func testCancelledWhileConfirming(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, FirstLease: long})
	for key, set := range map[string]func(redistest.Hook){"request": r.proxy.OnRequest, "reply": r.proxy.OnReply} {
		before := lock(t, r.other, bounded(t), key)
		ctx, cancel := context.WithCancel(bounded(t))
		going := r.inLine(ctx, key, 1, holdfast.FixedLease(time.Hour))
		staying := r.inLine(bounded(t), key, 2, holdfast.FixedLease(time.Hour))
		hook, held := holding("confirm")
		set(hook)
		require.NoError(t, before.Unlock(bounded(t)))
		within(t, held)
		cancel()
		require.ErrorIs(t, within(t, going).err, context.Canceled)
		set(nil)
		r.proxy.Release()
		l := got(t, staying)
		require.Equal(t, l.Owner(), r.owner(key))
		require.NoError(t, l.Unlock(bounded(t)))
	}
	r.tidy("request")
	r.tidy("reply")
}
