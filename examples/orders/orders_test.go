package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/pgtest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

func requireClean(t *testing.T, args ...string) {
	t.Helper()
	stdout := demotest.Succeeds(t, args...)
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
		db := redistest.Must(sql.Open("pgx", address))(t)
		defer db.Close()
		tables := 0
		require.NoError(t, db.QueryRow("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'orders%'").Scan(&tables))
		require.Zero(t, tables, "are left")
	})
}

// What the fence is for.
func TestWithoutFence(t *testing.T) {
	demotest.Fails(t, 1, `WRONG: 30 orders had 90 steps to do, and (9[1-9]|[1-9]\d\d) were done`, "-fence=false")
}

// A worker that stands still ends with the program, though no other worker will do its step.
func TestALateWorkerEndsWithTheProgram(t *testing.T) {
	defer func(checked bool) { *fence = checked }(*fence)
	*fence = false
	db := redistest.Must(sql.Open("sqlite", filepath.Join(t.TempDir(), "orders.db")))(t)
	defer db.Close()
	redistest.Must(db.Exec("CREATE TABLE orders_steps (id integer, step text); INSERT INTO orders_steps VALUES (0, 'paid')"))(t)
	running, interrupt := context.WithCancel(t.Context())
	interrupt()
	require.Equal(t, 1, redistest.Must((&shop{DB: db}).step(t.Context(), running, 0))(t), "done")
}

func TestBadInput(t *testing.T) {
	for _, address := range []string{"postgres://u:open-sesame@127.0.0.1:1/x", "postgres://u:open-sesame@127.0.0.1:x"} {
		status, _, stderr := demotest.Run(t, "-postgres="+address)
		require.Equal(t, 1, status, stderr)
		require.NotContains(t, stderr, "open-sesame")
		require.NotContains(t, stderr, "runtime error")
	}
}
