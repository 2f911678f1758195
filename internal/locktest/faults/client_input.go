package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func init() {
	register("F5_UnlockOfWhatIsNotHeld", testUnlockNotHeld)
	register("F8_BadInputIsRefusedBeforeIO", testBadInput)
	register("F8_AnyBytesAreAKey", testAnyKey)
}

// Unlocks that release nothing change nothing, and say what is the matter.
func testUnlockNotHeld(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, Fencing: true})
	ctx := Bounded(t)
	unchanged := func(what string, l *holdfast.Lease, want error) {
		t.Helper()
		before := r.Settled("k")
		require.ErrorIs(t, l.Unlock(ctx), want, what)
		require.Equal(t, before, r.Dump(), what)
	}

	first := Lock(t, r.Locker, ctx, "k")
	unlocked := make(chan error)
	go func() { unlocked <- first.Unlock(ctx) }()
	require.NoError(t, Within(t, unlocked), "from another goroutine")
	unchanged("second unlock, key free", first, holdfast.ErrReleased)

	next := Lock(t, r.Other, ctx, "k")
	unchanged("second unlock, key of another client", first, holdfast.ErrReleased)
	require.NoError(t, next.Unlock(ctx))

	next = Lock(t, r.Locker, ctx, "k")
	inner := Lock(t, r.Locker, next.Bind(ctx), "k")
	unchanged("second unlock, key of another owner of this client", first, holdfast.ErrReleased)
	require.NoError(t, inner.Unlock(ctx))
	unchanged("second unlock of a nested entry", inner, holdfast.ErrReleased)
	require.NoError(t, next.Unlock(ctx))

	expired := Lock(t, r.Locker, ctx, "k", holdfast.FixedLease(200*time.Millisecond))
	Within(t, expired.Done())
	Await(t, func() bool { return !Exists(t, r.Server, "k") })
	unchanged("after expiry, key free", expired, holdfast.ErrLost)

	expired = Lock(t, r.Locker, ctx, "k", holdfast.FixedLease(200*time.Millisecond))
	next = Lock(t, r.Other, ctx, "k")
	inner = Lock(t, r.Other, next.Bind(ctx), "k")
	unchanged("after expiry, key of another client", expired, holdfast.ErrLost)
	unchanged("after expiry, once more", expired, holdfast.ErrReleased)
	require.NoError(t, inner.Unlock(ctx))
	require.NoError(t, next.Unlock(ctx))

	// The hold was taken away, and this client does not know it yet.
	robbed := Lock(t, r.Locker, ctx, "k")
	r.Settled("k") // else a node that is late to hear of it may take it again, until it is renewed
	_, err := r.Other.ForceUnlock(ctx, "k")
	require.NoError(t, err)
	next = Lock(t, r.Other, ctx, "k")
	unchanged("robbed, key of another client", robbed, holdfast.ErrLost)
	require.NoError(t, next.Unlock(ctx))
}

// testBadInput shows that no command is sent for it.
func testBadInput(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long})
	ctx := Bounded(t)
	require.NoError(t, Lock(t, r.Locker, ctx, "k").Unlock(ctx))
	r.Settled("k") // else a node that is late with the release is counted
	var commands atomic.Int64
	background := []string{"ping", "cluster", "info"} // for a connection, the slots, and warnings of a server's settings
	r.Proxy.OnRequest(func(cmd []string) redistest.Verdict {
		if !slices.Contains(background, Verb(cmd)) {
			commands.Add(1)
		}
		return redistest.Pass
	})
	calls := func(key string, c ...holdfast.LockOption) (errs []error) {
		_, lock := r.Locker.Lock(ctx, key, c...)
		_, try := r.Locker.TryLock(ctx, key, c...)
		_, tryFor := r.Locker.TryLockFor(ctx, key, time.Second, c...)
		return []error{lock, try, tryFor}
	}
	for _, key := range []string{"", strings.Repeat("k", 1<<10+1)} {
		_, inspect := r.Locker.Inspect(ctx, key)
		_, force := r.Locker.ForceUnlock(ctx, key)
		for _, err := range append(calls(key), inspect, force) {
			require.ErrorContains(t, err, "key", "%d bytes", len(key))
		}
	}
	for _, lease := range []time.Duration{-time.Second, 99 * time.Millisecond, 1500500 * time.Microsecond, 200 * 365 * 24 * time.Hour} {
		for _, err := range calls("k", holdfast.FixedLease(lease)) {
			require.ErrorContains(t, err, "lease", lease)
		}
		_, err := d.New(r.Client, Options{Lease: lease})
		require.ErrorContains(t, err, "lease", lease)
	}
	require.Zero(t, commands.Load())
}

func testAnyKey(t *testing.T, d Kind) {
	r := newHarness(t, d, Options{Lease: Long, Fencing: true})
	ctx := Bounded(t)
	keys := []string{
		"{", "}", "{}", "a{b}c", "{b", "b}", "}{", "a{{b}}", "a\r\nb", "\x00", "a\x00b", "\xff\xfe", "ключ", " ", "a b", "*", "a:b:0", "'\"\\",
		"redisson_lock__channel:{k}", strings.Repeat("{", 1<<10),
	}
	for _, key := range keys {
		name := fmt.Sprintf("%.20q", key)
		if !d.Accepts(key) {
			_, err := r.Locker.TryLock(ctx, key)
			require.ErrorContains(t, err, "hash tag", name)
			continue
		}
		first := Lock(t, r.Locker, ctx, key)
		inner := Lock(t, r.Locker, first.Bind(ctx), key)
		s, err := r.Other.Inspect(ctx, key)
		require.NoError(t, err, name)
		require.Equal(t, first.Owner(), s.Owner, name)
		require.Equal(t, 2, s.Entries, name)
		_, err = r.Other.TryLock(ctx, key)
		require.ErrorIs(t, err, holdfast.ErrNotAcquired, name)
		next := GoLock(r.Other, ctx, key) // is woken, as the lease is long
		r.AwaitWaiters(key, 1)
		require.NoError(t, inner.Unlock(ctx), name)
		require.NoError(t, first.Unlock(ctx), name)
		second := Got(t, next)
		require.Greater(t, second.Fence(), first.Fence(), name)
		require.NoError(t, second.Unlock(ctx), name)
	}
	for _, key := range keys {
		r.Tidy(key)
	}
}
