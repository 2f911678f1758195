package multilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// Servers that cannot have the restart guard are refused at once, with the way out.
func TestOldServersCannotHaveTheGuard(t *testing.T) {
	t.Parallel()
	if !redistest.Before7() {
		t.Skip("needs a server before Redis 7.0")
	}
	const lease = time.Minute
	nodes := kindOf(3).Start(t)
	l := locktest.Opened(multilock.New(locktest.Clients(nodes.Client(t)), multilock.WithNodeTimeout(lease/10), holdfast.WithLease(lease)))(t)
	for name, call := range map[string]func() error{
		"TryLock":            func() error { _, err := l.TryLock(t.Context(), "k"); return err },
		"Lock":               func() error { _, err := l.Lock(t.Context(), "k"); return err },
		"DeclareNothingHeld": func() error { return l.DeclareNothingHeld(t.Context()) },
	} {
		began := time.Now()
		err := call()
		require.ErrorIs(t, err, holdfast.ErrOldServer, name)
		require.ErrorContains(t, err, "use WithoutRestartGuard", name)
		require.NotErrorIs(t, err, holdfast.ErrUnavailable, name)
		require.Less(t, time.Since(began), lease, "less than any wait: %s", name)
	}
	for _, n := range l.Nodes(t.Context()) {
		require.ErrorIs(t, n.Err, holdfast.ErrOldServer)
		require.False(t, n.Vote)
	}
	require.False(t, locktest.Exists(t, nodes, "k"))
}
