package multilock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/multilock"
)

// All nodes refuse the release, for as long as Close tries: it says so.
func TestCloseTellsWhatNodesRefuse(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	l := open(t, nodes, multilock.WithoutRestartGuard(), multilock.WithLease(9*time.Second), multilock.WithNodeTimeout(900*time.Millisecond))
	_, err := l.Lock(t.Context(), "k")
	require.NoError(t, err)
	for _, n := range nodes {
		n.Do(t, "ACL", "SETUSER", "default", "resetkeys")
	}
	err = l.Close()
	require.ErrorIs(t, err, holdfast.ErrUnknown)
	require.ErrorContains(t, err, `"k"`)
}
