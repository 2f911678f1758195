package faults

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
)

func init() {
	register("F15_NestedCallsWhileRedisHangs", testNestedWhileHanging)
}

// A nested call whose outcome is not known is being settled for as long as Redis
// hangs. Those that come after it do not wait so long; what they did is settled when
// Redis goes on.
func testNestedWhileHanging(t *testing.T, d Kind) {
	const lease = 3 * time.Second // of which a call takes a third
	r := newHarness(t, d, Options{Lease: lease, MaxOutage: ptr(time.Second)})
	outer := Lock(t, r.Locker, Bounded(t), "k", holdfast.FixedLease(time.Hour))
	ctx := outer.Bind(context.Background())
	inner, inmost := Lock(t, r.Locker, ctx, "k"), Lock(t, r.Locker, ctx, "k")
	require.Equal(t, 3, r.Entries("k"))

	r.Server.Pause()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := r.Locker.Lock(short, "k")
	RequireSentinel(t, err, holdfast.ErrUnknown)
	ends := make(chan error)
	for _, call := range []struct {
		want error
		make func() error
	}{
		{holdfast.ErrUnknown, func() error { return inner.Unlock(over()) }},
		{holdfast.ErrUnavailable, func() error { _, err := r.Locker.TryLock(ctx, "k"); return err }},
		{holdfast.ErrUnavailable, func() error { _, err := r.Locker.Lock(ctx, "k"); return err }},
		{holdfast.ErrUnavailable, func() error { _, err := r.Locker.TryLockFor(ctx, "k", time.Hour); return err }},
	} {
		go func() { ends <- call.make() }()
		RequireSentinel(t, Within(t, ends), call.want)
	}
	require.NoError(t, outer.Err())
	r.Server.Resume()
	Await(t, func() bool { return r.Entries("k") == 2 })
	require.NoError(t, Lock(t, r.Locker, ctx, "k").Unlock(Bounded(t)))
	require.NoError(t, inmost.Unlock(Bounded(t)))
	require.NoError(t, outer.Unlock(Bounded(t)))
	r.Tidy("k")
}
