package main

import (
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/demo/demotest"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

func requireClean(t *testing.T, args ...string) {
	t.Helper()
	status, stdout, stderr := demotest.Run(t, args...)
	require.Zero(t, status, stdout+stderr)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "refused what a late worker wrote")
	require.Contains(t, stdout, "30 orders are sent. Each step was done once.")
}

func TestG10_EachStepIsDoneOnce(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		requireClean(t)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		address := pgtest.Start(t)
		requireClean(t, "-postgres", address, "-redis", redistest.Start(t).Addr())
		db, err := sql.Open("pgx", address)
		require.NoError(t, err)
		defer db.Close()
		tables := 0
		require.NoError(t, db.QueryRow("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'orders%'").Scan(&tables))
		require.Zero(t, tables, "are left")
	})
}

// What the fence is for.
func TestWithoutFence(t *testing.T) {
	status, stdout, stderr := demotest.Run(t, "-fence=false")
	require.Equal(t, 1, status, stdout)
	require.Regexp(t, `WRONG: 30 orders had 90 steps to do, and 9[1-9] were done`, stderr)
}

func TestBadInput(t *testing.T) {
	for args, want := range map[string]int{"-unknown": 2, "-redis=127.0.0.1:1": 1, "-postgres=postgres://u:open-sesame@127.0.0.1:1/x": 1,
		"-postgres=postgres://u:open-sesame@127.0.0.1:x": 1} {
		status, _, stderr := demotest.Run(t, args)
		require.Equal(t, want, status, stderr)
		require.NotContains(t, stderr, "open-sesame")
		require.NotContains(t, stderr, "runtime error")
	}
}
