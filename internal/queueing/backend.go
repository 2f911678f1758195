package queueing

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/pubsub"
)

// Backend is the backend of a lock kind that serves its waiters first come, first served,
// from a queue in Redis. The discipline may repeat all calls of its own methods.
type Backend interface {
	engine.Backend
	// Enter puts owners at the end of the queue, in their order.
	Enter(ctx context.Context, name string, owners ...string) (wire.EnterReply, error)
	// Release ends a hold and gives the key to the next waiter.
	Release(ctx context.Context, h wire.FairReleaseRequest) (wire.FairReply, error)
	// Leave gives up owners, whether they wait or hold.
	Leave(ctx context.Context, l wire.LeaveRequest) (wire.FairReply, error)
	// Confirm sets the lease and the label of an owner that Redis has granted a name.
	Confirm(ctx context.Context, a wire.AcquireRequest, g wire.Grant) (wire.AcquireReply, error)
	// Heartbeat keeps the locker's places, and reports what has become of them.
	Heartbeat(ctx context.Context, asked []wire.HeartbeatRequest, replies []wire.HeartbeatReply) error
	// Listen listens to what is said to one client, the grants of name to it, or to one owner, Java's wake-ups.
	Listen(name, to string, receive func(message string)) *pubsub.Subscription
}
