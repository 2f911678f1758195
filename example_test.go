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
	locker, stop := demo()
	defer stop()
	double, err := holdfasttest.New(holdfasttest.WithFencing())
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
	ctx := context.Background()
	locker, stop := demo()
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
	locker, stop := demo(rlock.WithObserver(holdfast.Observer{
		Acquired: func(e holdfast.AcquiredEvent) { fmt.Println(e.Key, "acquired by", e.How) },
		Refused:  func(e holdfast.RefusedEvent) { fmt.Println(e.Key, "busy:", errors.Is(e.Err, holdfast.ErrNotAcquired)) },
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

// demo returns a locker on an embedded server, so that examples need no redis-server. Use it
// for nothing else: it protects nothing between processes.
func demo(opts ...rlock.Option) (locker *rlock.Locker, stop func()) {
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
	locker, err = rlock.New(client, opts...)
	if err != nil {
		panic(err)
	}
	return locker, func() {
		_ = locker.Close()
		client.Close()
		server.Close()
	}
}
