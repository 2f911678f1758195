package rlock_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/rlock"
)

const (
	channel = "redisson_lock__channel:{sku:42}"
	counter = "redisson_lock_token:{sku:42}"
)

// After each call, all data in Redis and every message are Redisson's, byte for byte. The tests
// of package wire have the names of other keys.
func TestLayout(t *testing.T) {
	r := locktest.NewLayout(t)
	ctx := t.Context()
	locker, other := userLocker(t, r.Client(t)), userLocker(t, r.Client(t))
	lease := locktest.Lock(t, locker, ctx, "sku:42")
	require.Regexp(t, "^"+locktest.OwnerPattern+"$", lease.Owner())
	r.Holds("sku:42", lease.Owner(), 1, 30*time.Second)
	r.Only("sku:42")

	// A nested entry changes the count, and leaves the expiry as it is.
	r.Do(t, "PEXPIRE", "sku:42", "25000")
	inner := locktest.Lock(t, locker, lease.Bind(ctx), "sku:42")
	r.Holds("sku:42", lease.Owner(), 2, 25*time.Second)
	require.NoError(t, inner.Unlock(ctx))

	// A waiter subscribes, and leaves nothing else.
	waiting := locktest.Go(func() error { return locktest.Cycle(other, ctx, "sku:42") })
	locktest.Await(t, func() bool { return locktest.Listeners(t, r.Server, channel) == 1 })
	r.Holds("sku:42", lease.Owner(), 1, 25*time.Second)
	r.Only("sku:42")
	require.Empty(t, r.Messages)
	require.NoError(t, lease.Unlock(ctx))
	require.NoError(t, <-waiting)
	locktest.Await(t, func() bool { return locktest.Listeners(t, r.Server, channel) == 0 })
	r.Only()
	for range 2 { // of two holds
		require.Equal(t, "0", r.Hears(channel))
	}

	locktest.Lock(t, locker, ctx, "sku:42")
	require.NoError(t, locktest.ErrOf(other.ForceUnlock(ctx, "sku:42")))
	require.Equal(t, "0", r.Hears(channel))
	r.Only()
	require.Empty(t, r.Messages)
}

func TestLayoutOfFences(t *testing.T) {
	r := locktest.NewLayout(t)
	week := userLocker(t, r.Client(t), holdfast.WithFencing())
	ever := userLocker(t, r.Client(t), holdfast.WithFencing(), holdfast.WithFenceExpiry(0))
	for _, step := range []struct {
		locker  *rlock.Locker
		expires bool // the counter, then
	}{{week, true}, {week, true}, {ever, false}, {week, false}} {
		lease := locktest.Lock(t, step.locker, t.Context(), "sku:42")
		r.Holds("sku:42", lease.Owner(), 1, 30*time.Second)
		r.Only("sku:42", counter)
		require.NoError(t, lease.Unlock(t.Context()))
		r.Only(counter)
		require.Equal(t, strconv.FormatInt(lease.Fence(), 10), r.Text("GET", counter))
		if step.expires {
			r.Expires(counter, 7*24*time.Hour)
		} else {
			require.Equal(t, -1, locktest.Number(t, r.Server, "PTTL", counter))
		}
	}
}

func userLocker(t testing.TB, c rueidis.Client, opts ...holdfast.Option) *rlock.Locker {
	return locktest.Opened(rlock.New(c, opts...))(t)
}
