package fair_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fair"
)

// Waiters are served in the order in which they came, over all processes.
func ExampleLocker_Lock() {
	ctx, locker, stop := demo()
	defer stop()
	lease, err := locker.Lock(ctx, "desk")
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for i, name := range []string{"first", "second", "third"} {
		all.Go(func() {
			mine, err := locker.Lock(ctx, "desk")
			if err != nil {
				panic(err)
			}
			fmt.Println(name)
			_ = mine.Unlock(ctx)
		})
		for waiting := 0; waiting <= i; { // until it is in the queue
			status, err := locker.Inspect(ctx, "desk")
			if err != nil {
				panic(err)
			}
			waiting = status.Waiting
		}
	}
	_ = lease.Unlock(ctx)
	all.Wait()
	// Output:
	// first
	// second
	// third
}

// A caller is told its place in the queue of all processes.
func Example_onPlace() {
	ctx, locker, stop := demo()
	defer stop()
	lease, err := locker.Lock(ctx, "desk")
	if err != nil {
		panic(err)
	}
	mine, err := locker.Lock(ctx, "desk", holdfast.OnPlace(func(place int) {
		fmt.Println("place", place)
		_ = lease.Unlock(ctx)
	}))
	if err != nil {
		panic(err)
	}
	_ = mine.Unlock(ctx)
	// Output: place 1
}

// demo returns a locker on an embedded server, so that examples need no redis-server. Use it
// for nothing else: it protects nothing between processes.
func demo() (ctx context.Context, locker *fair.Locker, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	locker, err = fair.New(client)
	if err != nil {
		panic(err)
	}
	return context.Background(), locker, func() {
		_ = locker.Close()
		client.Close()
		server.Close()
	}
}
