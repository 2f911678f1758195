package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

func TestOneRunForEachDueTime(t *testing.T) {
	t.Parallel()
	stdout := demotest.Succeeds(t, "-runs", "1", "-every", "40s") // so long that a machine may stand still
	require.Positive(t, demotest.Number(t, stdout, `(\d+) due times, and as many runs`), stdout)
}

// What the lock is for.
func TestWithoutLock(t *testing.T) {
	t.Parallel()
	demotest.Fails(t, 1, `WRONG: \d+ due times, and \d+ runs`, "-runs", "1", "-every", "40s", "-lock=false", "-redis", redistest.Start(t).Addr())
}

func TestBadInput(t *testing.T) {
	demotest.Fails(t, 1, "at least 1", "-runs=0")
}
