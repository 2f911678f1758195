package multilock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestLockAll_RefusesWhatHasNoOrder(t *testing.T) {
	s := newSets(t)
	for want, keys := range map[string]multilock.KeySet{
		"no keys":            {},
		"locker is nil":      multilock.Keys(nil, "a"),
		"OrderName for each": multilock.Keys(s.plain, "a").And(multilock.Keys(s.queued, "a")),
		`two have "x"`:       multilock.Keys(s.plain, "a").And(multilock.Keys(s.queued, "a")).OrderName("x"),
		"are of one locker":  multilock.Keys(s.plain, "a").OrderName("1").And(multilock.Keys(s.plain, "b").OrderName("2")),
	} {
		_, err := multilock.LockAll(t.Context(), keys)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
	keys := multilock.Keys(s.plain, "a")
	refused := func(err error, want string) {
		t.Helper()
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
	_, err := multilock.TryLockAllFor(t.Context(), keys, -1)
	refused(err, "negative")
	_, err = multilock.LockAll(t.Context(), keys, holdfast.WaitAtMost(-1))
	refused(err, "negative")
	_, err = multilock.LockAll(t.Context(), keys, nil)
	refused(err, "option is nil")
	_, err = multilock.TryLockAll(t.Context(), keys, holdfast.WaitAtMost(1))
	refused(err, "WaitAtMost is for DoAll and LockAll")
	refused(multilock.DoAll(t.Context(), keys, nil), "function is nil")
	s.free("a")
}

// double is a user's own Locker, which wraps one of ours.
type double struct {
	*rlock.Locker
	locked []string
}

func (d *double) Lock(ctx context.Context, key string, opts ...multilock.LockOption) (*multilock.Lease, error) {
	d.locked = append(d.locked, key)
	return d.Locker.Lock(ctx, key, opts...)
}

// LockAll calls a user's own Locker key by key. After a panic, as of a nil pointer to a
// Locker, nothing is held.
func TestLockAll_AsksTheLockerOfAUser(t *testing.T) {
	s := newSets(t)
	d := &double{Locker: s.plain}
	set, err := multilock.LockAll(t.Context(), multilock.Keys(d, "b", "a"))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, d.locked)
	require.NoError(t, set.Unlock(t.Context()))
	for _, none := range []holdfast.Locker{(*rlock.Locker)(nil), (*fair.Locker)(nil), &double{}} {
		require.Panics(t, func() {
			_, _ = multilock.LockAll(t.Context(), multilock.Keys(s.plain, "a").OrderName("1").And(multilock.Keys(none, "a", "b").OrderName("2")))
		})
		s.free("a")
	}
}

// Even if it would first have to wait for another key.
func TestF8_LockAll_RefusesBeforeItTakesAny(t *testing.T) {
	s := newSets(t)
	their, err := s.plain.Lock(t.Context(), "a")
	require.NoError(t, err)
	for _, key := range []string{"{a}", "holdfast_node", ""} {
		for _, keys := range []multilock.KeySet{multilock.Keys(s.plain, "a", key), s.keys("a", key)} {
			_, err := multilock.LockAll(t.Context(), keys)
			require.ErrorContains(t, err, "key is")
			_, err = multilock.TryLockAllFor(t.Context(), keys, time.Hour)
			require.ErrorContains(t, err, "key is")
			_, err = multilock.TryLockAll(t.Context(), keys)
			require.ErrorContains(t, err, "key is")
			require.NotErrorIs(t, err, multilock.ErrNotAcquired)
			require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
		}
	}
	_, err = multilock.TryLockAll(t.Context(), multilock.Keys(s.plain, strings.Repeat("ж", 1000)))
	require.ErrorContains(t, err, `"`+strings.Repeat("ж", 32)+`"…: key has 2000 bytes`)
	require.NoError(t, their.Unlock(t.Context()))
	s.free("a")
}

// Nor does it wait for a key if another locker refuses the terms, or a nested entry does.
func TestF8_LockAll_RefusesTermsBeforeItTakesAny(t *testing.T) {
	s := newSets(t)
	capped, err := rlock.New(redistest.Start(t).Client(t), rlock.WithMaxHold(time.Minute))
	require.NoError(t, err)
	defer capped.Close()
	_, err = s.plain.Lock(t.Context(), "a")
	require.NoError(t, err)
	held, err := capped.Lock(t.Context(), "b")
	require.NoError(t, err)
	keys := multilock.Keys(s.plain, "a").OrderName("1").And(multilock.Keys(capped, "b").OrderName("2"))
	for want, c := range map[string]struct {
		ctx  context.Context
		term multilock.LockOption
	}{
		"longer than WithMaxHold":   {t.Context(), holdfast.MaxHold(time.Hour)},
		"refused on a nested entry": {held.Bind(t.Context()), holdfast.MaxHold(time.Second)},
	} {
		_, err = multilock.TryLockAllFor(c.ctx, keys, 100*time.Millisecond, c.term)
		require.ErrorContains(t, err, want)
		require.ErrorIs(t, err, holdfast.ErrInvalidArgument)
	}
}
