package fair_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

// After each call, all data in Redis and every message are Redisson's, or have a name that
// Redisson does not use. The tests of package wire have the names of other keys.
func TestLayout(t *testing.T) {
	const (
		key, queue, scores  = "sku:42", "redisson_lock_queue:{sku:42}", "redisson_lock_timeout:{sku:42}"
		heartbeats, counter = "holdfast_heartbeat:{sku:42}", "redisson_lock_token:{sku:42}"
	)
	r := locktest.NewLayout(t)
	opts := []holdfast.Option{holdfast.WithFencing(), fair.WithWaiterTTL(time.Minute), fair.WithGrantLease(time.Minute), holdfast.WithLease(time.Minute)}
	holder, waiter := userLocker(t, r.Client(t), opts...), userLocker(t, r.Client(t), opts...)
	l := locktest.Lock(t, holder, t.Context(), key)
	require.Regexp(t, "^"+locktest.OwnerPattern+"$", l.Owner())
	r.Holds(key, l.Owner(), 1, time.Minute)
	require.Equal(t, strconv.FormatInt(l.Fence(), 10), r.Text("GET", counter))
	r.Expires(counter, 7*24*time.Hour)
	r.Only(key, counter)

	next := locktest.GoLock(waiter, t.Context(), key)
	locktest.Await(t, func() bool { return len(locktest.Queued(t, r.Server, key)) == 1 })
	r.Only(key, counter, queue, scores, heartbeats)
	owner := locktest.Queued(t, r.Server, key)[0]
	client, _, _ := strings.Cut(owner, ":")
	require.NotEqual(t, l.Owner()[:36], client)
	r.Expires(queue, 7*24*time.Hour)
	r.Expires(scores, 7*24*time.Hour)
	number := func(command ...string) int { return locktest.Number(t, r.Server, command...) }
	until := func(command ...string) float64 { // the time in a reply, from now by the clock of this machine, in ms
		return locktest.Must(strconv.ParseFloat(r.Text(command...), 64))(t) - float64(time.Now().UnixMilli())
	}
	require.Equal(t, 1, number("ZCARD", scores))
	require.InDelta(t, 30_000, until("ZSCORE", scores, owner), 20_000)
	require.Equal(t, 2, number("HLEN", heartbeats)) // with the label
	require.InDelta(t, 60_000, until("HGET", heartbeats, client), 20_000)
	r.Expires(heartbeats, 2*time.Minute)
	inbox := locktest.InboxOf(key, owner)
	require.Equal(t, "redisson_lock__channel:{sku:42}:"+client, inbox)
	require.Equal(t, []string{inbox}, locktest.Channels(t, r.Server))
	require.Empty(t, r.Messages)

	require.NoError(t, l.Unlock(t.Context()))
	granted := locktest.Got(t, next)
	require.Equal(t, owner, granted.Owner())
	r.Holds(key, owner, 1, time.Minute)
	require.Regexp(t, fmt.Sprintf(`^%s 60000 %d \d+ for %s$`, owner, granted.Fence(), key), r.Hears(inbox))
	r.Only(key, counter, heartbeats)

	require.NoError(t, granted.Unlock(t.Context()))
	r.Only(counter, heartbeats)
	locktest.Lock(t, waiter, t.Context(), key)
	require.NoError(t, locktest.ErrOf(holder.ForceUnlock(t.Context(), key)))
	r.Only(counter, heartbeats)
	require.Empty(t, r.Messages, "nobody waits")
	locktest.Await(t, func() bool { return len(locktest.Channels(t, r.Server)) == 0 })
}

func userLocker(t testing.TB, c rueidis.Client, opts ...holdfast.Option) *fair.Locker {
	return locktest.Opened(fair.New(c, opts...))(t)
}
