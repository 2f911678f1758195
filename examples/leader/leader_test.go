package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/demo/demotest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

// The three terms end by death, by loss, and with the work.
func TestLeadersFollowOneAnother(t *testing.T) {
	for _, where := range []string{"embedded", "real"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			var args []string
			if where == "real" {
				args = []string{"-redis", redistest.Start(t).Addr()}
			}
			status, stdout, stderr := demotest.Run(t, args...)
			require.Zero(t, status, stdout+stderr)
			require.Empty(t, stderr)
			require.Contains(t, stdout, "was killed")
			require.Contains(t, stdout, "has lost the lock")
			require.GreaterOrEqual(t, demotest.Number(t, stdout, `All 30 pieces of work are done, by (\d+) leaders`), 3)
		})
	}
}

// The processes ride out a restart of Redis.
func TestRedisRestarts(t *testing.T) {
	redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c, out, stderr := demotest.Start(t, "(?s)leads.*leads", "-redis", redis.Addr())
	redis.Kill()
	redis.Restart()
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, c.Wait(), stderr.String())
	require.Contains(t, string(rest), "All 30 pieces of work are done")
}

func TestBadInput(t *testing.T) {
	for args, want := range map[string]int{"-unknown": 2, "argument": 2, "-redis=127.0.0.1:1": 1} {
		status, stdout, stderr := demotest.Run(t, args)
		require.Equal(t, want, status, stderr)
		require.Empty(t, stdout)
	}
}
