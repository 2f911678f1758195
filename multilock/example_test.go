package multilock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rlock"
)

// embedded starts servers in this process; use your own.
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

// A program starts while two of its five masters are away.
func ExampleOpen() {
	ctx := context.Background()
	masters, stop := embedded(5)
	defer stop()
	var nodes []rueidis.ClientOption
	for i, master := range masters {
		for address := range master.Nodes() {
			if i >= 3 {
				address = "127.0.0.1:1" // nobody answers there
			}
			nodes = append(nodes, rueidis.ClientOption{InitAddress: []string{address}})
		}
	}

	// Embedded servers have no run id, and so no restart guard.
	locker, err := multilock.Open(nodes, multilock.WithoutRestartGuard())
	if err != nil {
		panic(err)
	}
	defer locker.Close() // also closes the clients

	err = locker.Do(ctx, "order:1001", func(ctx context.Context) error {
		fmt.Println("three of five nodes say it is mine")
		return nil
	})
	fmt.Println(err)
	// Output:
	// three of five nodes say it is mine
	// <nil>
}

// If too few nodes say yes, the error has the answer of each.
func Example_quorumError() {
	ctx := context.Background()
	clients, stop := embedded(3)
	defer stop()
	locker, err := multilock.New(clients, multilock.WithoutRestartGuard(), multilock.WithNodeTimeout(3*time.Second))
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	other, err := multilock.New(clients, multilock.WithoutRestartGuard())
	if err != nil {
		panic(err)
	}
	defer other.Close()
	lease, err := other.Lock(ctx, "order:1001")
	if err != nil {
		panic(err)
	}
	defer lease.Unlock(ctx)

	_, err = locker.TryLock(ctx, "order:1001")
	held := 0
	if quorumErr := (*holdfast.QuorumError)(nil); errors.As(err, &quorumErr) {
		for _, n := range quorumErr.Nodes {
			if errors.Is(n.Err, holdfast.ErrHeld) { // else: yes if nil, or why it said neither
				held++
			}
		}
		fmt.Println(errors.Is(err, holdfast.ErrNotAcquired), held >= quorumErr.Need)
	}
	// Output: true true
}

// A script that sets a deployment up, before any program runs.
func ExampleLocker_DeclareNothingHeld() {
	var clients []rueidis.Client // one for each master
	locker, err := multilock.New(clients)
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	if err := locker.DeclareNothingHeld(context.Background()); err != nil {
		panic(err)
	}
	for _, n := range locker.Nodes(context.Background()) {
		fmt.Println(n.Node, n.Vote, n.Remaining, n.Err)
	}
}

// Keys of one locker, with a bounded wait for all of them.
func ExampleDoAll() {
	ctx := context.Background()
	clients, stop := embedded(1)
	defer stop()
	accounts, err := rlock.New(clients[0])
	if err != nil {
		panic(err)
	}
	defer accounts.Close()

	err = multilock.DoAll(ctx, multilock.Keys(accounts, "alice", "bob"), func(context.Context) error {
		fmt.Println("transferred")
		return nil
	}, holdfast.WaitAtMost(10*time.Second))
	fmt.Println(err)
	// Output:
	// transferred
	// <nil>
}

// Keys of several lockers. Each locker has a name, the same in every process.
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
