package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
)

func init() {
	register("F15_NestedCallsWhileRedisHangs", testNestedWhileHanging)
}

// A nested call whose outcome is not known is being settled for as long as Redis
// hangs. Those that come after it do not wait so long; what they did is settled when
// Redis goes on.
func testNestedWhileHanging(t *testing.T, d Kind) {
	const lease = 3 * time.Second // of which a call takes a third
	r := newFaultRig(t, d, Options{Lease: lease, MaxOutage: ptr(time.Second)})
	outer := lock(t, r.locker, bounded(t), "k", holdfast.FixedLease(time.Hour))
	ctx := outer.Bind(context.Background())
	inner, inmost := lock(t, r.locker, ctx, "k"), lock(t, r.locker, ctx, "k")
	require.Equal(t, 3, r.entries("k"))

	r.server.Pause()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := r.locker.Lock(short, "k")
	requireSentinel(t, err, holdfast.ErrUnknown)
	ends := make(chan error)
	for _, call := range []struct {
		want error
		make func() error
	}{
		{holdfast.ErrUnknown, func() error { return inner.Unlock(over()) }},
		{holdfast.ErrUnavailable, func() error { _, err := r.locker.TryLock(ctx, "k"); return err }},
		{holdfast.ErrUnavailable, func() error { _, err := r.locker.Lock(ctx, "k"); return err }},
		{holdfast.ErrUnavailable, func() error { _, err := r.locker.TryLockFor(ctx, "k", time.Hour); return err }},
	} {
		go func() { ends <- call.make() }()
		requireSentinel(t, within(t, ends), call.want)
	}
	require.NoError(t, outer.Err())
	r.server.Resume()
	await(t, func() bool { return r.entries("k") == 2 })
	require.NoError(t, lock(t, r.locker, ctx, "k").Unlock(bounded(t)))
	require.NoError(t, inmost.Unlock(bounded(t)))
	require.NoError(t, outer.Unlock(bounded(t)))
	r.tidy("k")
}
