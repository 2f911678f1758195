// Package metricstest is the test that the modules in observe/ share.
package metricstest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// Point is the name of a metric, without a suffix of its unit or kind, and the values of its
// attributes.
type Point struct{ Name, Key, Label string }

// KeyName names a key by its part before the colon.
func KeyName(key string) string { name, _, _ := strings.Cut(key, ":"); return name }

// Run makes a locker go through all that happens to locks, and requires that read finds it.
// read returns the sum of each point, or how often it was recorded if it is a histogram. keys
// reports whether o names keys by KeyName.
func Run(t *testing.T, o holdfast.Observer, keys bool, read func() map[Point]float64) {
	server := redistest.Start(t)
	open := func(opts ...holdfast.Option) *rlock.Locker {
		l, err := rlock.New(server.Client(t), append(opts, holdfast.WithLease(15*time.Second), holdfast.WithLocalHandover(6*time.Second))...)
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	l, other := open(holdfast.WithObserver(o)), open()
	ctx := t.Context()
	value := func(key, name, label string) float64 {
		if !keys {
			key = ""
		}
		return read()[Point{"holdfast_" + name, key, label}]
	}
	is := func(want float64, key, name, label string) {
		t.Helper()
		require.Eventually(t, func() bool { return value(key, name, label) == want }, redistest.Patience, time.Millisecond,
			"%s{%s,%s} is not %v: %v", name, key, label, want, read())
	}
	lock := func(l holdfast.Locker, key string) *holdfast.Lease {
		t.Helper()
		lease, err := l.Lock(ctx, key)
		require.NoError(t, err)
		return lease
	}
	if !keys {
		require.Contains(t, read(), Point{"holdfast_lock_lost", "", "not_ours"}, "the first loss is no increase")
	}

	require.NoError(t, l.Do(ctx, "a:1", func(ctx context.Context) error {
		is(1, "a", "lock_held", "")
		return l.Do(ctx, "a:1", func(context.Context) error { return nil })
	}))
	is(1, "a", "lock_acquired", "call")
	is(1, "a", "lock_acquired", "re-entry")
	is(2, "a", "lock_hold_duration", "")
	is(1, "a", "lock_wait_duration", "")
	is(0, "a", "lock_held", "")

	first, second := lock(l, "a:2"), make(chan *holdfast.Lease)
	go func() {
		lease, _ := l.Lock(ctx, "a:2")
		second <- lease
	}()
	is(1, "a", "lock_waiting", "")
	require.NoError(t, first.Unlock(ctx))
	require.NoError(t, (<-second).Unlock(ctx))
	is(1, "a", "lock_acquired", "handover")
	is(0, "a", "lock_waiting", "")

	theirs := lock(other, "b:1")
	_, err := l.TryLock(ctx, "b:1")
	require.ErrorIs(t, err, holdfast.ErrNotAcquired)
	is(1, "b", "lock_failed", "not_acquired")
	is(1, "b", "lock_wait_duration", "not_acquired")
	require.NoError(t, theirs.Unlock(ctx))

	lease := lock(l, "c:1")
	_, err = other.ForceUnlock(ctx, "c:1")
	require.NoError(t, err)
	require.ErrorIs(t, lease.Unlock(ctx), holdfast.ErrLost)
	is(1, "c", "lock_lost", "not_ours")
	is(1, "c", "lock_hold_duration", "not_ours")

	lock(l, "d:1")
	require.Eventually(t, func() bool { return value("d", "lease_renewal_delay", "") > 0 }, redistest.Patience, time.Millisecond)
	server.Kill()
	is(1, "d", "lock_lost", "expired")
	is(0, "d", "lock_held", "")
	require.Positive(t, value("d", "lease_renewal_failed", "unavailable")+value("d", "lease_renewal_failed", "unknown"))
	_, err = l.TryLock(ctx, "e:1")
	require.Error(t, err)
	require.Eventually(t, func() bool {
		return value("e", "lock_failed", "unavailable")+value("e", "lock_failed", "unknown") == 1
	}, redistest.Patience, time.Millisecond, "%v %v", err, read())
	is(1, "", "outage_active", "")
}
