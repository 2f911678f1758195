package api

import (
	"context"
	"log/slog"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

// Code as the README showed it before all kinds of locks had one Lease: it goes on
// compiling, but for the names of LockAll. Nothing here runs.
var _ = []any{readmeDo, readmeBind, readmeQuorum}

func readmeDo(ctx context.Context, client rueidis.Client, sell func(context.Context, string) error) {
	locker, err := rlock.New(client) // any rueidis.Client, shared with the rest of the program
	if err != nil {
		panic(err)
	}
	defer locker.Close()

	err = locker.Do(ctx, "sku:42", func(ctx context.Context) error {
		// One goroutine of all processes is in here. If the lock is lost, ctx ends.
		return sell(ctx, "sku:42")
	})
	_ = err
}

func readmeBind(ctx context.Context, locker *rlock.Locker) {
	outer, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	defer outer.Unlock(ctx)

	ctx = outer.Bind(ctx) // from here on, ctx stands for the owner of the lock

	inner, err := locker.Lock(ctx, "sku:42") // enters once more, does not wait
	if err != nil {
		panic(err)
	}
	defer inner.Unlock(ctx)
}

func readmeQuorum(ctx context.Context, clients []rueidis.Client, ship func(context.Context) error) error {
	locker, err := multilock.New(clients, multilock.WithLogger(slog.Default())) // it is told why a node has no vote
	if err != nil {
		return err
	}
	defer locker.Close()
	return locker.Do(ctx, "order:42", ship)
}
