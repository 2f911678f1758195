package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/rlock"
)

// Shop is a service that locks. It takes a lock of any kind, and a double in its tests.
type Shop struct{ locks holdfast.Locker }

func (s *Shop) Sell(ctx context.Context, sku string) error {
	return s.locks.Do(ctx, sku, func(ctx context.Context) error {
		fmt.Println("sold", sku, "under fence", holdfast.LeaseFrom(ctx).Fence())
		return nil
	}, holdfast.WaitAtMost(10*time.Second))
}

func ExampleLocker() {
	_, locker, stop := demo()
	defer stop()
	double, err := holdfasttest.New(holdfast.WithFencing())
	if err != nil {
		panic(err)
	}
	for _, locks := range []holdfast.Locker{locker, double} {
		shop := Shop{locks}
		if err := shop.Sell(context.Background(), "sku:42"); err != nil {
			panic(err)
		}
	}
	// Output:
	// sold sku:42 under fence 0
	// sold sku:42 under fence 1
}

// WaitAtMost bounds the wait, not the work under the lock.
func ExampleWaitAtMost() {
	ctx, locker, stop := demo()
	defer stop()
	err := locker.Do(ctx, "sku:42", func(context.Context) error {
		return locker.Do(ctx, "sku:42", func(context.Context) error { // another caller
			return nil
		}, holdfast.WaitAtMost(0))
	}, holdfast.WaitAtMost(10*time.Second))
	fmt.Println(errors.Is(err, holdfast.ErrNotAcquired))
	// Output: true
}

// Functions of any metrics library take the place of the prints.
func ExampleObserver() {
	_, locker, stop := demo(holdfast.WithObserver(holdfast.Observer{
		Acquired: func(e holdfast.AcquiredEvent) { fmt.Println(e.Key, "acquired by", e.How) },
		Failed:   func(e holdfast.FailedEvent) { fmt.Println(e.Key, "busy:", errors.Is(e.Err, holdfast.ErrNotAcquired)) },
		Released: func(e holdfast.ReleasedEvent) { fmt.Println(e.Key, "held for a while:", e.Held > 0) },
	}))
	err := locker.Do(context.Background(), "sku:42", func(context.Context) error {
		_, _ = locker.TryLock(context.Background(), "sku:42")
		return nil
	})
	if err != nil {
		panic(err)
	}
	stop() // Close tells what is still to be told
	// Output:
	// sku:42 acquired by call
	// sku:42 busy: true
	// sku:42 held for a while: true
}

// A job that runs once a day, in any one process. It does not unlock the lease, so the key
// stays taken after the job; Close of the locker would free it.
func ExampleFixedLease() {
	ctx, locker, stop := demo()
	defer stop()
	for range 2 { // say, in two processes
		_, err := locker.TryLock(ctx, "daily report", holdfast.FixedLease(23*time.Hour))
		switch {
		case err == nil:
			fmt.Println("reported")
		case errors.Is(err, holdfast.ErrNotAcquired):
			fmt.Println("done already")
		default:
			fmt.Println("no lock:", err)
		}
	}
	// Output:
	// reported
	// done already
}

// A holder that hangs is cut off: the context of its work ends.
func ExampleMaxHold() {
	ctx, locker, stop := demo()
	defer stop()
	err := locker.Do(ctx, "sku:42", func(ctx context.Context) error {
		<-ctx.Done() // it hangs
		return ctx.Err()
	}, holdfast.MaxHold(50*time.Millisecond))
	fmt.Println(errors.Is(err, holdfast.ErrLost))
	// Output: true
}

// A lease that nobody unlocks does not hold its key forever.
func ExampleWithMaxHold() {
	ctx, locker, stop := demo(holdfast.WithMaxHold(100 * time.Millisecond)) // a service would take an hour
	defer stop()
	forgotten, err := locker.Lock(ctx, "sku:42")
	if err != nil {
		panic(err)
	}
	fmt.Println(locker.Do(ctx, "sku:42", func(context.Context) error {
		fmt.Println("sold")
		return nil
	}))
	fmt.Println(forgotten.Err())
	// Output:
	// sold
	// <nil>
	// holdfast: lease of "sku:42": lease lost: the longest hold is over
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
	ctx, locker, stop := demo(holdfast.WithFencing())
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

// demo returns a locker on an embedded server, so that examples need no redis-server. Use it
// for nothing else: it protects nothing between processes.
func demo(opts ...holdfast.Option) (ctx context.Context, locker *rlock.Locker, stop func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	server.ClockTTL(true) // else nothing expires there
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	locker, err = rlock.New(client, opts...)
	if err != nil {
		panic(err)
	}
	return context.Background(), locker, func() {
		_ = locker.Close()
		client.Close()
		server.Close()
	}
}
