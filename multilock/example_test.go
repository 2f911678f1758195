package multilock_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

// embedded starts as many servers in this process; use your own.
func embedded(n int) (clients []rueidis.Client, stop func()) {
	var stops []func()
	for range n {
		server, err := miniredis.Run()
		if err != nil {
			panic(err)
		}
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true})
		if err != nil {
			panic(err)
		}
		clients = append(clients, client)
		stops = append(stops, client.Close, server.Close)
	}
	return clients, func() {
		for _, f := range stops {
			f()
		}
	}
}

func ExampleNew() {
	ctx := context.Background()
	clients, stop := embedded(5)
	defer stop()

	// Embedded servers have no run id, and so no restart guard.
	locker, err := multilock.New(clients, multilock.WithoutRestartGuard())
	if err != nil {
		panic(err)
	}
	defer locker.Close()

	err = locker.Do(ctx, "order:1001", func(ctx context.Context) error {
		fmt.Println("three of five nodes say it is mine")
		return nil
	})
	fmt.Println(err)
	// Output:
	// three of five nodes say it is mine
	// <nil>
}

// shipOrder locks on real Redis masters: embedded servers have no run id.
func shipOrder(ctx context.Context, clients []rueidis.Client, ship func(context.Context) error) error {
	locker, err := multilock.New(clients, multilock.WithLogger(slog.Default())) // it is told why a node has no vote
	if err != nil {
		return err
	}
	defer locker.Close()
	return locker.Do(ctx, "order:42", ship)
}

func ExampleLocker_shipOrder() {
	var clients []rueidis.Client // one of each master
	err := shipOrder(context.Background(), clients, func(context.Context) error { return nil })
	fmt.Println(err)
}

// A script for the person who sets a deployment up, before any program runs.
func ExampleLocker_Bootstrap() {
	var clients []rueidis.Client // one of each master
	locker, err := multilock.New(clients)
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	if err := locker.Bootstrap(context.Background(), multilock.NothingHeld()); err != nil {
		panic(err)
	}
	for _, n := range locker.Nodes(context.Background()) {
		fmt.Println(n.Node, n.Vote, n.Left, n.Err)
	}
}

func ExampleLockAll() {
	ctx := context.Background()
	clients, stop := embedded(2)
	defer stop()
	stock, err := rlock.New(clients[0])
	if err != nil {
		panic(err)
	}
	defer stock.Close()
	orders, err := rlock.New(clients[1])
	if err != nil {
		panic(err)
	}
	defer orders.Close()

	set, err := multilock.LockAll(ctx,
		multilock.Keys(stock, "sku:42", "sku:7").OrderName("stock").
			And(multilock.Keys(orders, "order:1001").OrderName("orders")))
	if err != nil {
		panic(err)
	}
	defer set.Unlock(ctx)
	fmt.Println(set.Keys())
	// Output: [order:1001 sku:42 sku:7]
}
