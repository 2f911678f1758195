package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/rlock"
)

func ExampleLocker_Do() {
	ctx, client, stop := demo()
	defer stop()

	locker, err := rlock.New(client) // any rueidis.Client, shared with the rest of the program
	if err != nil {
		panic(err)
	}
	defer locker.Close()

	err = locker.Do(ctx, "sku:42", func(ctx context.Context) error {
		// One goroutine of all processes is in here. If the lock is lost, ctx ends.
		return sell(ctx, "sku:42")
	})
	fmt.Println(err)
	// Output:
	// sold sku:42
	// <nil>
}

func ExampleLocker_TryLockFor() {
	ctx, client, stop := demo()
	defer stop()
	locker, err := rlock.New(client)
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	other, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	defer other.Unlock(ctx)

	lease, err := locker.TryLockFor(ctx, "sku:42", 10*time.Millisecond)
	switch {
	case errors.Is(err, rlock.ErrNotAcquired):
		fmt.Println("busy, please come back later")
	case err != nil:
		fmt.Println("no lock:", err)
	default:
		defer lease.Unlock(ctx)
		fmt.Println("it is mine")
	}
	// Output: busy, please come back later
}

func ExampleLease_Bind() {
	ctx, client, stop := demo()
	defer stop()
	locker, err := rlock.New(client)
	if err != nil {
		panic(err)
	}
	defer locker.Close()

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

	status, err := locker.Inspect(ctx, "sku:42")
	fmt.Println(status.Entries, err)
	// Output: 2 <nil>
}

func ExampleLease_Fence() {
	ctx, client, stop := demo()
	defer stop()
	locker, err := rlock.New(client, rlock.WithFencing())
	if err != nil {
		panic(err)
	}
	defer locker.Close()

	newest := int64(0)
	write := func(fence int64) error { // what a database does in one statement
		if fence < newest {
			return errors.New("refused: a newer holder was here")
		}
		newest = fence
		return nil
	}

	paused, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	_, err = locker.ForceUnlock(ctx, "sku:42") // its lease is over, but it does not look
	if err != nil {
		panic(err)
	}
	next, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	defer next.Unlock(ctx)

	fmt.Println("next:", write(next.Fence()))
	fmt.Println("paused:", write(paused.Fence()))
	// Output:
	// next: <nil>
	// paused: refused: a newer holder was here
}

// sell stands for what a program does in its critical section.
func sell(_ context.Context, sku string) error {
	fmt.Println("sold", sku)
	return nil
}

// demo returns a client of an embedded server. That suits examples, which need
// no redis-server then, and nothing else: it protects nothing between processes.
func demo() (ctx context.Context, client rueidis.Client, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	server.ClockTTL(true) // else nothing expires there
	client, err = rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	return context.Background(), client, func() {
		client.Close()
		server.Close()
	}
}
