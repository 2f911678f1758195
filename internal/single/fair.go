package single

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/queueing"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/pubsub"
)

// Fair is a [queueing.Backend] with the queues of one Redis. Acquires go out in batches, and
// so do releases and the undoing of acquires. Its other methods are those of [wire.Fair].
type Fair struct {
	*wire.Fair
	server
	acquires *batcher[wire.AcquireRequest, wire.AcquireReply]
	releases *batcher[wire.FairReleaseRequest, wire.FairReply] // of holds without a run or a doubt
	leaves   *batcher[wire.LeaveRequest, wire.FairReply]       // of a single owner in doubt
}

// NewFair returns an engine on the Redis of client.
func NewFair(client rueidis.Client, c engine.Config, own queueing.Config) *engine.Engine {
	return queueing.New(newFair(client, c, own), c, own)
}

// maxMembers is how many waiters of one locker may follow the first of a run:
// enough for a tenure of short sections, few enough to be named in a message.
const maxMembers = 64

func newFair(client rueidis.Client, c engine.Config, own queueing.Config) *Fair {
	settings := wire.FairSettings{LockerID: c.LockerID, WaiterTTL: own.WaiterTTL, GrantLease: own.GrantLease, Fencing: c.Fences(1)}
	if c.LocalHandover > 0 && !own.ConfirmGrants { // a confirmation must not trust the numbers of a message, and would skip them
		settings.Members = maxMembers
		settings.Fencing = c.Fences(c.TenureFences())
	}
	f := &Fair{server: connect(client, c)}
	f.Fair = wire.NewFair(f.redis, settings)
	f.acquires = newBatcher(f.server, f.Fair.Acquire, f.AcquireEach)
	f.releases = newBatcher(f.server, f.Fair.Release, f.ReleaseEach)
	f.leaves = newBatcher(f.server, f.Fair.Leave, f.LeaveEach)
	return f
}

// Acquire takes a free key without waiters, alone or in a batch.
func (f *Fair) Acquire(ctx context.Context, a wire.AcquireRequest) (wire.AcquireReply, error) {
	return f.acquires.do(ctx, a)
}

// Release ends a hold and gives the key to the next waiter, alone or in a batch.
func (f *Fair) Release(ctx context.Context, h wire.FairReleaseRequest) (wire.FairReply, error) {
	if h.Doubt || len(h.Served) > 0 {
		return f.Fair.Release(ctx, h)
	}
	return f.releases.do(ctx, h)
}

// Leave gives up owners. Only the call for a single owner in doubt may join a batch.
func (f *Fair) Leave(ctx context.Context, l wire.LeaveRequest) (wire.FairReply, error) {
	if len(l.InDoubt) != 1 || len(l.Others) > 0 {
		return f.Fair.Leave(ctx, l)
	}
	return f.leaves.do(ctx, l)
}

// Listen listens to what is said to a client or an owner.
func (f *Fair) Listen(name, to string, receive func(string)) *pubsub.Subscription {
	return f.subscriber.SubscribeFunc(wire.Inbox(name, to), receive)
}
