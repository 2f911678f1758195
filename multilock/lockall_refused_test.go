package multilock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
)

func TestLockAll_RefusesWhatHasNoOrder(t *testing.T) {
	withSets(t, func(s sets) {
		all := func(keys multilock.KeySet, opts ...holdfast.LockOption) func() error {
			return func() error { _, err := multilock.LockAll(s.Context(), keys, opts...); return err }
		}
		keys := multilock.Keys(s.plain, "a")
		shared := locktest.Opened(rwlock.New(s.Clients(0)[0]))(s)
		byValue := struct { // cannot be compared
			holdfast.Locker
			of []string
		}{Locker: s.plain}
		for want, call := range map[string]func() error{
			"no keys":            all(multilock.KeySet{}),
			"locker is nil":      all(multilock.Keys(nil, "a")),
			"OrderName for each": all(keys.And(multilock.Keys(s.queued, "a"))),
			`two have "x"`:       all(keys.And(multilock.Keys(s.queued, "a")).OrderName("x")),
			"are of one locker":  all(keys.OrderName("1").And(multilock.Keys(s.plain, "b").OrderName("2"))),
			"the halves of one":  all(keys.OrderName("1").And(multilock.Keys(shared.RLocker(), "b").OrderName("2")).And(multilock.Keys(shared, "c").OrderName("3"))),
			"option is nil":      all(keys, nil),
			"-1ns is negative":   all(keys, holdfast.WaitAtMost(-1)),
			"empty":              all(multilock.Keys(byValue, "a").OrderName("1").And(multilock.Keys(byValue, "").OrderName("2"))),
			"wait of -1ns is":    func() error { _, err := multilock.TryLockAllFor(s.Context(), keys, -1); return err },
			"WaitAtMost is for": func() error {
				return locktest.ErrOf(multilock.TryLockAll(s.Context(), keys, holdfast.WaitAtMost(1)))
			},
			"function is nil": func() error { return multilock.DoAll(s.Context(), keys, nil) },
		} {
			locktest.RequireSentinel(s, call(), holdfast.ErrInvalidArgument, want)
		}
		s.free("a")
	})
}

// double is a user's own Locker, which wraps one of ours.
type double struct {
	*rlock.Locker
	locked []string
}

func (d *double) Lock(ctx context.Context, key string, opts ...holdfast.LockOption) (*holdfast.Lease, error) {
	d.locked = append(d.locked, key)
	return d.Locker.Lock(ctx, key, opts...)
}

// LockAll calls a user's own Locker key by key. After a panic, as of a nil pointer to a
// Locker, nothing is held.
func TestLockAll_AsksTheLockerOfAUser(t *testing.T) {
	withSets(t, func(s sets) {
		d := &double{Locker: s.plain}
		set := s.lockAll(multilock.Keys(d, "b", "a"))
		require.Equal(s, []string{"a", "b"}, d.locked)
		require.NoError(s, set.Unlock(s.Context()))
		for _, none := range []holdfast.Locker{(*rlock.Locker)(nil), (*fair.Locker)(nil), &double{}} {
			require.Panics(s, func() {
				_, _ = multilock.LockAll(s.Context(), multilock.Keys(s.plain, "a").OrderName("1").And(multilock.Keys(none, "a", "b").OrderName("2")))
			})
			s.free("a")
		}
	})
}

// Even if it would first have to wait for another key.
func TestF8_LockAll_RefusesBeforeItTakesAny(t *testing.T) {
	withSets(t, func(s sets) {
		their := s.lock(s.plain, "a")
		for _, key := range []string{"{a}", "holdfast_node", ""} {
			for _, keys := range []multilock.KeySet{multilock.Keys(s.plain, "a", key), s.keys("a", key)} {
				require.ErrorContains(s, locktest.ErrOf(multilock.LockAll(s.Context(), keys)), "key is")
				require.ErrorContains(s, locktest.ErrOf(multilock.TryLockAllFor(s.Context(), keys, time.Hour)), "key is")
				_, err := multilock.TryLockAll(s.Context(), keys)
				require.ErrorContains(s, err, "key is")
				require.NotErrorIs(s, err, holdfast.ErrNotAcquired)
				require.ErrorIs(s, err, holdfast.ErrInvalidArgument)
			}
		}
		_, err := multilock.TryLockAll(s.Context(), multilock.Keys(s.plain, strings.Repeat("ж", 1000)))
		require.ErrorContains(s, err, `"`+strings.Repeat("ж", 32)+`"…: key has 2000 bytes`)
		require.NoError(s, their.Unlock(s.Context()))
		s.free("a")
	})
}

// Nor does it wait for a key if another locker refuses the terms, or a nested entry does.
func TestF8_LockAll_RefusesTermsBeforeItTakesAny(t *testing.T) {
	withSets(t, func(s sets) {
		capped := s.rlock(s.Clients(1)[1], holdfast.WithMaxHold(time.Minute))
		s.lock(s.plain, "a")
		held := s.lock(capped, "b")
		keys := multilock.Keys(s.plain, "a").OrderName("1").And(multilock.Keys(capped, "b").OrderName("2"))
		for want, c := range map[string]struct {
			ctx  context.Context
			term holdfast.LockOption
		}{
			"longer than WithMaxHold":   {s.Context(), holdfast.MaxHold(time.Hour)},
			"refused on a nested entry": {held.Bind(s.Context()), holdfast.MaxHold(time.Second)},
		} {
			locktest.RequireSentinel(s, locktest.ErrOf(multilock.TryLockAllFor(c.ctx, keys, time.Second, c.term)), holdfast.ErrInvalidArgument, want)
		}
	})
}
