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

func ExampleNew() {
	client, stop := embedded() // any rueidis.Client, shared with the rest of the program
	defer stop()
	locker, err := rlock.New(client, rlock.WithLease(10*time.Second))
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

// Work that one process does at a time, while the others leave it alone.
func ExampleLocker_TryLock() {
	ctx, locker, stop := demo()
	defer stop()
	clean := func() {
		lease, err := locker.TryLock(ctx, "cleaning")
		if errors.Is(err, rlock.ErrNotAcquired) {
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

	lease, err := locker.TryLockFor(ctx, "sku:42", 10*time.Millisecond)
	switch {
	case err == nil:
		defer lease.Unlock(ctx)
		fmt.Println("it is mine")
	case errors.Is(err, rlock.ErrNotAcquired):
		fmt.Println("busy, please come back later")
	case errors.Is(err, rlock.ErrUnavailable), errors.Is(err, rlock.ErrUnknown):
		fmt.Println("redis does not answer:", err)
	default: // waiting cannot cure it: a missing right, a bad argument
		fmt.Println("no lock:", err)
	}
	// Output: busy, please come back later
}

// WaitAtMost bounds the wait, not the work.
func ExampleWaitAtMost() {
	ctx, locker, stop := demo()
	defer stop()
	fmt.Println(locker.Do(ctx, "sku:42", sell, rlock.WaitAtMost(10*time.Second)))
	// Output:
	// sold
	// <nil>
}

// A holder that hangs is cut off: the context of its work ends.
func ExampleMaxHold() {
	ctx, locker, stop := demo()
	defer stop()
	err := locker.Do(ctx, "sku:42", func(ctx context.Context) error {
		<-ctx.Done() // it hangs
		return ctx.Err()
	}, rlock.MaxHold(50*time.Millisecond))
	fmt.Println(errors.Is(err, rlock.ErrLost))
	// Output: true
}

// A lease that nobody unlocks does not hold its key for ever.
func ExampleWithMaxHold() {
	ctx, locker, stop := demo(rlock.WithMaxHold(100 * time.Millisecond)) // a service would take an hour
	defer stop()
	forgotten, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	fmt.Println(locker.Do(ctx, "sku:42", sell))
	fmt.Println(forgotten.Err())
	// Output:
	// sold
	// <nil>
	// holdfast: lease of "sku:42": lease lost: the longest hold is over
}

// A job that runs once a day, in any one process. It does not unlock the lease, so the key
// stays taken after the job; Close of the locker would free it.
func ExampleFixedLease() {
	ctx, locker, stop := demo()
	defer stop()
	for range 2 { // say, in two processes
		_, err := locker.TryLock(ctx, "daily report", rlock.FixedLease(23*time.Hour))
		switch {
		case err == nil:
			fmt.Println("reported")
		case errors.Is(err, rlock.ErrNotAcquired):
			fmt.Println("done already")
		default:
			fmt.Println("no lock:", err)
		}
	}
	// Output:
	// reported
	// done already
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

func ExampleLease_Bind() {
	ctx, locker, stop := demo()
	defer stop()
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
	ctx, locker, stop := demo(rlock.WithFencing())
	defer stop()

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
	_, err = locker.ForceUnlock(ctx, "sku:42") // its lease is over, but it does not check
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

// sell stands for the critical section of a program.
func sell(context.Context) error {
	fmt.Println("sold")
	return nil
}

// demo returns a locker on an embedded server.
func demo(opts ...rlock.Option) (ctx context.Context, locker *rlock.Locker, stop func()) {
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
