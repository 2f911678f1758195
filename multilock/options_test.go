package multilock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// By default a wait outlasts the quarantine of a node, even if that is much longer than the
// lease.
func TestLockWaitsOutTheQuarantine(t *testing.T) {
	const longest = time.Hour
	c, err := configure("New", 1, []Option{WithLease(time.Second), WithMaxLease(longest)})
	require.NoError(t, err)
	require.Greater(t, *c.engine.MaxOutage, longest+longest/50+2*time.Millisecond) // as in quorum/check.lua
}
