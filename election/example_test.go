package election_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/election"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// A program has an rlock.Locker where the example has a double.
func Example() {
	locks, err := holdfasttest.New(holdfast.WithFencing())
	if err != nil {
		panic(err)
	}
	candidate, err := election.New(locks, "jobs:leader")
	if err != nil {
		panic(err)
	}
	err = candidate.Run(context.Background(), func(ctx context.Context) error {
		fmt.Println("leads, with fence", holdfast.LeaseFrom(ctx).Fence())
		return context.Cause(ctx) // of a term that was lost: then Run campaigns again
	})
	fmt.Println(err, candidate.IsLeader(context.Background()))
	// Output:
	// leads, with fence 1
	// <nil> not the leader
}
