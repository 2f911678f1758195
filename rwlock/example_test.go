package rwlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rwlock"
)

// Many read a catalogue at once. The one that rebuilds it is alone, and goes on as a reader.
func Example() {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		panic(err)
	}
	defer client.Close()
	locker, err := rwlock.New(client)
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	ctx, readers := context.Background(), locker.RLocker()

	err = readers.Do(ctx, "catalogue", func(ctx context.Context) error {
		fmt.Println("reads; it is stale")
		_, err := locker.Lock(ctx, "catalogue") // it would deadlock
		return err
	})
	fmt.Println(errors.Is(err, holdfast.ErrUpgrade))

	writes, err := locker.Lock(ctx, "catalogue")
	if err != nil {
		panic(err)
	}
	fmt.Println("rebuilds, unless another was faster")
	reads, err := readers.Lock(writes.Bind(ctx), "catalogue")
	if err != nil {
		panic(err)
	}
	_ = writes.Unlock(ctx) // others read from here on
	status, err := locker.Inspect(ctx, "catalogue")
	if err != nil {
		panic(err)
	}
	fmt.Println(status.Mode, status.Readers)
	_ = reads.Unlock(ctx)
	// Output:
	// reads; it is stale
	// true
	// rebuilds, unless another was faster
	// read 1
}
