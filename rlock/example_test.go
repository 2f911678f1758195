package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rlock"
)

func ExampleNew() {
	client, stop := embedded() // any rueidis.Client, shared with the rest of the program
	defer stop()
	locker, err := rlock.New(client, holdfast.WithLease(10*time.Second))
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	fmt.Println(locker.Do(context.Background(), "sku:42", sell))
	// Output:
	// sold
	// <nil>
}

func ExampleLocker_Do() {
	ctx, locker, stop := demo()
	defer stop()
	err := locker.Do(ctx, "sku:42", func(ctx context.Context) error {
		// One goroutine of all processes is in here. If the lock is lost, ctx ends.
		return sell(ctx)
	})
	fmt.Println(err)
	// Output:
	// sold
	// <nil>
}

func ExampleLocker_Lock() {
	ctx, locker, stop := demo()
	defer stop()
	lease, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	defer lease.Unlock(ctx)
	fmt.Println(lease.Key(), lease.Err())
	// Output: sku:42 <nil>
}

func ExampleLocker_Locks() {
	ctx, locker, stop := demo()
	defer stop()
	lease, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	defer lease.Unlock(ctx)
	for status, err := range locker.Locks(ctx, "sku:") {
		if err != nil {
			fmt.Println(err) // of one key or server; a return is fine, too
			continue
		}
		fmt.Println(status.Key, status.Owner == lease.Owner(), status.Entries)
	}
	// Output: sku:42 true 1
}

// Work that one process does at a time, while the others leave it alone.
func ExampleLocker_TryLock() {
	ctx, locker, stop := demo()
	defer stop()
	clean := func() {
		lease, err := locker.TryLock(ctx, "cleaning")
		if errors.Is(err, holdfast.ErrNotAcquired) {
			fmt.Println("another cleans")
			return
		} else if err != nil {
			panic(err)
		}
		defer lease.Unlock(ctx)
		fmt.Println("clean")
	}
	clean()
	theirs, err := locker.Lock(ctx, "cleaning")
	if err != nil {
		panic(err)
	}
	defer theirs.Unlock(ctx)
	clean()
	// Output:
	// clean
	// another cleans
}

// A caller distinguishes these errors.
func ExampleLocker_TryLockFor() {
	ctx, locker, stop := demo()
	defer stop()
	theirs, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	defer theirs.Unlock(ctx)

	lease, err := locker.TryLockFor(ctx, "sku:42", time.Second)
	switch {
	case err == nil:
		defer lease.Unlock(ctx)
		fmt.Println("it is mine")
	case errors.Is(err, holdfast.ErrNotAcquired):
		fmt.Println("busy, please come back later")
	case errors.Is(err, holdfast.ErrUnavailable), errors.Is(err, holdfast.ErrUnknown):
		fmt.Println("redis does not answer:", err)
	default: // waiting cannot cure it: a missing right, a bad argument
		fmt.Println("no lock:", err)
	}
	// Output: busy, please come back later
}

func ExampleLocker_Inspect() {
	ctx, locker, stop := demo()
	defer stop()
	lease, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	defer lease.Unlock(ctx)
	status, err := locker.Inspect(ctx, "sku:42")
	fmt.Println(status.Held, status.Owner == lease.Owner(), err)
	// Output: true true <nil>
}

// An operator frees a key; its holder learns of it.
func ExampleLocker_ForceUnlock() {
	ctx, locker, stop := demo()
	defer stop()
	lease, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	fmt.Println(locker.ForceUnlock(ctx, "sku:42"))
	<-lease.Done()
	fmt.Println(lease.Err())
	// Output:
	// true <nil>
	// holdfast: lease of "sku:42": lease lost: force-unlocked
}

// sell stands for the critical section of a program.
func sell(context.Context) error {
	fmt.Println("sold")
	return nil
}

// demo returns a locker on an embedded server.
func demo(opts ...holdfast.Option) (ctx context.Context, locker *rlock.Locker, stop func()) {
	client, end := embedded()
	locker, err := rlock.New(client, opts...)
	if err != nil {
		panic(err)
	}
	return context.Background(), locker, func() {
		_ = locker.Close()
		end()
	}
}

// embedded returns a client of an embedded server, so that examples need no redis-server. Use
// it for nothing else: it protects nothing between processes.
func embedded() (client rueidis.Client, stop func()) {
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
	return client, func() {
		client.Close()
		server.Close()
	}
}
