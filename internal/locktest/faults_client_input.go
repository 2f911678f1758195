package locktest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	register("F5_UnlockOfWhatIsNotHeld", testUnlockNotHeld)
	register("F8_BadInputIsRefusedBeforeIO", testBadInput)
	register("F8_AnyBytesAreAKey", testAnyKey)
}

// Unlocks that release nothing change nothing, and say what is the matter.
func testUnlockNotHeld(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, Fencing: true})
	ctx := bounded(t)
	unchanged := func(what string, l *holdfast.Lease, want error) {
		t.Helper()
		before := r.settled("k")
		require.ErrorIs(t, l.Unlock(ctx), want, what)
		require.Equal(t, before, r.dump(), what)
	}

	first := lock(t, r.locker, ctx, "k")
	unlocked := make(chan error)
	go func() { unlocked <- first.Unlock(ctx) }()
	require.NoError(t, within(t, unlocked), "from another goroutine")
	unchanged("second unlock, key free", first, holdfast.ErrReleased)

	next := lock(t, r.other, ctx, "k")
	unchanged("second unlock, key of another client", first, holdfast.ErrReleased)
	require.NoError(t, next.Unlock(ctx))

	next = lock(t, r.locker, ctx, "k")
	inner := lock(t, r.locker, next.Bind(ctx), "k")
	unchanged("second unlock, key of another owner of this client", first, holdfast.ErrReleased)
	require.NoError(t, inner.Unlock(ctx))
	unchanged("second unlock of a nested entry", inner, holdfast.ErrReleased)
	require.NoError(t, next.Unlock(ctx))

	expired := lock(t, r.locker, ctx, "k", holdfast.FixedLease(200*time.Millisecond))
	within(t, expired.Done())
	await(t, func() bool { return !exists(t, r.server, "k") })
	unchanged("after expiry, key free", expired, holdfast.ErrLost)

	expired = lock(t, r.locker, ctx, "k", holdfast.FixedLease(200*time.Millisecond))
	next = lock(t, r.other, ctx, "k")
	inner = lock(t, r.other, next.Bind(ctx), "k")
	unchanged("after expiry, key of another client", expired, holdfast.ErrLost)
	unchanged("after expiry, once more", expired, holdfast.ErrReleased)
	require.NoError(t, inner.Unlock(ctx))
	require.NoError(t, next.Unlock(ctx))

	// The hold was taken away, and this client does not know it yet.
	robbed := lock(t, r.locker, ctx, "k")
	r.settled("k") // else a node that is late to hear of it may take it again, until it is renewed
	_, err := r.other.ForceUnlock(ctx, "k")
	require.NoError(t, err)
	next = lock(t, r.other, ctx, "k")
	unchanged("robbed, key of another client", robbed, holdfast.ErrLost)
	require.NoError(t, next.Unlock(ctx))
}

// testBadInput shows that no command is sent for it.
func testBadInput(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long})
	ctx := bounded(t)
	require.NoError(t, lock(t, r.locker, ctx, "k").Unlock(ctx))
	r.settled("k") // else a node that is late with the release is counted
	var commands atomic.Int64
	r.proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if verb(cmd) != "ping" {
			commands.Add(1)
		}
		return redistest.Pass
	})
	calls := func(key string, c ...holdfast.LockOption) (errs []error) {
		_, lock := r.locker.Lock(ctx, key, c...)
		_, try := r.locker.TryLock(ctx, key, c...)
		_, tryFor := r.locker.TryLockFor(ctx, key, time.Second, c...)
		return []error{lock, try, tryFor}
	}
	for _, key := range []string{"", strings.Repeat("k", 1<<10+1)} {
		_, inspect := r.locker.Inspect(ctx, key)
		_, force := r.locker.ForceUnlock(ctx, key)
		for _, err := range append(calls(key), inspect, force) {
			require.ErrorContains(t, err, "key", "%d bytes", len(key))
		}
	}
	for _, lease := range []time.Duration{-time.Second, 99 * time.Millisecond, 1500500 * time.Microsecond, 200 * 365 * 24 * time.Hour} {
		for _, err := range calls("k", holdfast.FixedLease(lease)) {
			require.ErrorContains(t, err, "lease", lease)
		}
		_, err := d.New(r.client, Options{Lease: lease})
		require.ErrorContains(t, err, "lease", lease)
	}
	require.Zero(t, commands.Load())
}

func testAnyKey(t *testing.T, d Kind) {
	r := newFaultRig(t, d, Options{Lease: long, Fencing: true})
	ctx := bounded(t)
	keys := []string{
		"{", "}", "{}", "a{b}c", "{b", "b}", "}{", "a{{b}}", "a\r\nb", "\x00", "a\x00b", "\xff\xfe", "ключ", " ", "a b", "*", "a:b:0", "'\"\\",
		"redisson_lock__channel:{k}", strings.Repeat("{", 1<<10),
	}
	for _, key := range keys {
		name := fmt.Sprintf("%.20q", key)
		first := lock(t, r.locker, ctx, key)
		inner := lock(t, r.locker, first.Bind(ctx), key)
		s, err := r.other.Inspect(ctx, key)
		require.NoError(t, err, name)
		require.Equal(t, first.Owner(), s.Owner, name)
		require.Equal(t, 2, s.Entries, name)
		_, err = r.other.TryLock(ctx, key)
		require.ErrorIs(t, err, holdfast.ErrNotAcquired, name)
		next := lockAside(r.other, ctx, key) // is woken, as the lease is long
		r.awaitWaiters(key, 1)
		require.NoError(t, inner.Unlock(ctx), name)
		require.NoError(t, first.Unlock(ctx), name)
		second := got(t, next)
		require.Greater(t, second.Fence(), first.Fence(), name)
		require.NoError(t, second.Unlock(ctx), name)
	}
	for _, key := range keys {
		r.tidy(key)
	}
}
