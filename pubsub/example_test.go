package pubsub_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/pubsub"
)

// Waiting for a key to change: subscribe, look when the subscription is confirmed and at each
// wake-up, and take a message for no more than a reason to look.
func Example() {
	server, err := miniredis.Run() // an embedded server; use your own
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true,
	})
	if err != nil {
		panic(err)
	}
	defer client.Close()

	s := pubsub.New(client, nil)
	defer s.Close()
	sub := s.Subscribe("changed")
	defer sub.Close()

	ctx := context.Background()
	for range sub.Wake() {
		st := sub.State()
		if !st.Live {
			continue // a program would look now and then until the connection is back
		}
		value, err := client.Do(ctx, client.B().Get().Key("shop").Build()).ToString()
		if err == nil {
			fmt.Println("the shop is", value)
			return
		}
		fmt.Println("nothing yet")
		client.Do(ctx, client.B().Set().Key("shop").Value("open").Build())
		client.Do(ctx, client.B().Publish().Channel("changed").Message("0").Build())
	}
	// Output:
	// nothing yet
	// the shop is open
}
