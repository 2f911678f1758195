package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/demo/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

func TestOneRunForEachDueTime(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := demotest.Run(t, "-runs", "1", "-every", "40s") // so long that a machine may stand still
	require.Zero(t, status, stdout+stderr)
	require.Empty(t, stderr)
	require.Positive(t, demotest.Number(t, stdout, `(\d+) due times, and as many runs`), stdout)
}

// What the lock is for.
func TestWithoutLock(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := demotest.Run(t, "-runs", "1", "-every", "40s", "-lock=false", "-redis", redistest.Start(t).Addr())
	require.Equal(t, 1, status, stdout)
	require.Regexp(t, `WRONG: \d+ due times, and \d+ runs`, stderr)
}

func TestBadInput(t *testing.T) {
	status, stdout, stderr := demotest.Run(t, "-runs=0")
	require.Equal(t, 1, status, stderr)
	require.Empty(t, stdout)
}
