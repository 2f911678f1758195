package main

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/internal/testing/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

// requireClean judges the books themselves, not what the program says of them.
func requireClean(t *testing.T, buyers, stock int, args ...string) (stdout string) {
	t.Helper()
	status, stdout, stderr := demotest.Run(t, append(args, "-buyers", strconv.Itoa(buyers), "-stock", strconv.Itoa(stock))...)
	require.NotContains(t, stderr, "WRONG", "two holders")
	require.Zero(t, status, stdout+stderr)
	require.NotContains(t, stdout+stderr, "open-sesame")
	orders := 0
	for _, item := range []string{"0", "1", "2"} {
		line := "item " + item + ": "
		orders += demotest.Number(t, stdout, line+`(\d+) orders`)
		sold, left := demotest.Number(t, stdout, line+`.* (\d+) sold`), demotest.Number(t, stdout, line+`.* (\d+) left`)
		require.Equal(t, stock, sold, stdout)
		require.Zero(t, left, stdout)
	}
	require.Equal(t, buyers, orders, stdout)
	return stdout
}

func TestG1_NothingIsOversold(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		require.Contains(t, requireClean(t, 300, 30), "for demonstration only")
	})
	t.Run("real", func(t *testing.T) {
		s := redistest.Start(t, "--requirepass", "open-sesame")
		requireClean(t, 300, 30, "-redis", "redis://default:open-sesame@"+s.Addr()+"/3")
		require.NotContains(t, redistest.Must(s.Do(t, "INFO", "keyspace").ToString())(t), "db", "keys are left")
	})
}

// What the lock is for.
func TestWithoutLockOversells(t *testing.T) {
	demotest.Fails(t, 1, `WRONG: stock and books differ by [1-9]`, "-lock=false", "-buyers", "600", "-stock", "30")
}

func TestF1_KilledProcess(t *testing.T) {
	demotest.OnBoth(t, func(t *testing.T, redis ...string) {
		stdout := requireClean(t, 400, 40, append(redis, "-kill", "-lease", "3s")...)
		require.Contains(t, stdout, "Process 1 was killed while it held a lock.")
	})
}

// A holder that lost the lock, and does not know it, changes nothing any more.
func TestG10_LateHolderIsRefused(t *testing.T) {
	ctx, client := t.Context(), redistest.Start(t).Client(t)
	locker := redistest.Must(rlock.New(client, holdfast.WithFencing(), holdfast.WithLocalHandover(0)))(t)
	defer locker.Close()
	s := &shop{Table: demo.Table{Redis: &demo.Redis{Client: client, Run: "test"}}, locker: locker}
	require.NoError(t, s.Write(ctx, "item0", 0, map[string]int64{"stock": 3}))

	late, next, key := order(3), order(0), s.Key("lock", "item0")
	err := locker.Do(ctx, key, func(bound context.Context) error {
		fence := holdfast.LeaseFrom(bound).Fence()
		redistest.Must(s.Read(ctx, "item0", fence, "stock"))(t) // has looked, and then stands still
		redistest.Must(locker.ForceUnlock(ctx, key))(t)
		require.NoError(t, s.place(ctx, next))
		require.ErrorIs(t, s.Write(ctx, "item0", fence, map[string]int64{"stock": 1, late.String(): 2}), demo.ErrLate)
		return nil
	})
	require.ErrorIs(t, err, holdfast.ErrLost)

	require.NoError(t, s.place(ctx, late), "placed again")
	require.NoError(t, s.place(ctx, late), "and once more, which changes nothing")
	row := redistest.Must(s.Row(ctx, "item0"))(t)
	require.Equal(t, map[string]int64{"stock": 0, next.String(): 1, late.String(): 2}, row)
}

func TestRedisDies(t *testing.T) {
	demotest.RedisDies(t, "goroutines sell", "-buyers", "500000", "-lease", "500ms")
}

func TestBadInputSellsNothing(t *testing.T) {
	for args, want := range map[string]int{"-gaurd=none": 2, "-buyers=-1": 2, "-stock=-3": 2, "orders.csv": 2, "-redis=u:open-sesame@127.0.0.1:1": 1} {
		status, stdout, stderr := demotest.Run(t, args)
		require.Equal(t, want, status, stderr)
		require.Empty(t, stdout)
		require.NotContains(t, stderr, "open-sesame")
	}
}
