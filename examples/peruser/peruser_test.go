package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

func TestNoMoneyIsLost(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		stdout := demotest.Succeeds(t)
		require.Contains(t, stdout, "User 4 paid 60 times 1, and has 60.\n")
		require.Contains(t, stdout, "All is well.")
	})
	t.Run("real, with impatient requests", func(t *testing.T) {
		t.Parallel()
		status, stdout, stderr := demotest.Run(t, "-wait", "100ms", "-redis", redistest.Start(t).Addr())
		require.Zero(t, status, stdout+stderr)
		require.Contains(t, stdout, "User 4 paid 60 times 1, and has 60.\n")
		require.Positive(t, demotest.Number(t, stdout, `(\d+) requests were sent again`), stdout)
	})
}

// What the middleware is for.
func TestWithoutLock(t *testing.T) {
	demotest.Fails(t, 1, `WRONG: user 0 paid 60 times 1, and has \d+\n`, "-lock=false")
}

func TestBadInput(t *testing.T) {
	status, _, stderr := demotest.Run(t, "-wait=-1s")
	require.Equal(t, 1, status, stderr)
	require.NotContains(t, stderr, "runtime error")
}
