// Package lockclienttest is what the tests of adapters for other clients share.
package lockclienttest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// Excludes requires that one of two lockers waits for the other, for each of some keys.
func Excludes(t *testing.T, one, other holdfast.Locker, keys ...string) {
	t.Helper()
	for _, key := range keys {
		ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
		defer cancel()
		held, err := one.Lock(ctx, key)
		require.NoError(t, err)
		_, err = other.TryLock(ctx, key)
		for errors.Is(err, holdfast.ErrUnavailable) && ctx.Err() == nil { // its client may not know yet of a failover
			time.Sleep(10 * time.Millisecond)
			_, err = other.TryLock(ctx, key)
		}
		require.ErrorIs(t, err, holdfast.ErrNotAcquired)
		waiting := make(chan error, 1)
		go func() { waiting <- other.Do(ctx, key, func(context.Context) error { return nil }) }()
		require.NoError(t, held.Unlock(ctx))
		require.NoError(t, <-waiting)
	}
}

// User gives a server a user that may do what locks need.
func User(t *testing.T, s *redistest.Server, rules ...string) {
	t.Helper()
	s.Do(t, append([]string{"ACL", "SETUSER", "shop", "on", "~*", "&*", "+@all"}, rules...)...)
}

// Connections are the lines of CLIENT LIST with that name.
func Connections(t *testing.T, s *redistest.Server, name string) (all []string) {
	t.Helper()
	list := s.Do(t, "CLIENT", "LIST")
	text, err := list.ToString()
	require.NoError(t, err)
	for line := range strings.Lines(text) {
		if strings.Contains(line, " name="+name+" ") {
			all = append(all, line)
		}
	}
	return all
}
