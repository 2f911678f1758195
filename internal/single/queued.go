package single

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/queueing"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// Queued is a [queueing.Backend] with the queues of one Redis. Acquires go out in batches, and
// so do releases and the undoing of acquires. Its other methods are those of [scripts.Fair].
type Queued struct {
	*scripts.Fair
	server
	acquires *batcher[none, scripts.Ask, scripts.Acquired]
	releases *batcher[none, scripts.FairHold, scripts.Passed] // of holds without a run or a doubt
	leaves   *batcher[none, scripts.Hold, scripts.Passed]     // of a single owner in doubt
}

var _ interface {
	engine.AsksPolicy
	engine.Lists
} = (*Queued)(nil)

// NewQueued returns an engine on the Redis of client, and its backend.
func NewQueued(client rueidis.Client, c queueing.Config, s scripts.FairSettings) (*engine.Engine, *Queued) {
	r := &Queued{server: connect(client, c.Config)}
	r.Fair = scripts.NewFair(r.node, s)
	r.acquires = newBatcher(fewOn(r.node), r.calls.Go, func(ctx context.Context, _ none, a scripts.Ask) (scripts.Acquired, error) {
		return r.Fair.Acquire(ctx, a.Key, a.Owner, a.Lease)
	}, alike(r.AcquireEach))
	r.releases = newBatcher(fewOn(r.node), r.calls.Go, func(ctx context.Context, _ none, h scripts.FairHold) (scripts.Passed, error) {
		return r.Fair.Release(ctx, h.Key, h.Owner, h.LastFence, false)
	}, alike(r.ReleaseEach))
	r.leaves = newBatcher(fewOn(r.node), r.calls.Go, func(ctx context.Context, _ none, h scripts.Hold) (scripts.Passed, error) {
		return r.Fair.Leave(ctx, h.Key, 1, h.Owner)
	}, alike(r.LeaveEach))
	return queueing.New(r, c), r
}

// Acquire takes a free key without waiters, alone or in a batch.
func (r *Queued) Acquire(ctx context.Context, key, owner string, lease time.Duration, _ int64) (scripts.Acquired, error) {
	return r.acquires.do(ctx, none{}, scripts.Ask{Key: key, Owner: owner, Lease: lease})
}

// Release ends a hold and gives the key to the next waiter, alone or in a batch.
func (r *Queued) Release(ctx context.Context, key, owner string, lastFence int64, doubt bool, served ...string) (scripts.Passed, error) {
	if doubt || len(served) > 0 {
		return r.Fair.Release(ctx, key, owner, lastFence, doubt, served...)
	}
	return r.releases.do(ctx, none{}, scripts.FairHold{Hold: scripts.Hold{Key: key, Owner: owner}, LastFence: lastFence})
}

// Leave gives up owners, alone or, for a single owner in doubt, in a batch.
func (r *Queued) Leave(ctx context.Context, key string, doubts int, owners ...string) (scripts.Passed, error) {
	if doubts != 1 || len(owners) != 1 {
		return r.Fair.Leave(ctx, key, doubts, owners...)
	}
	return r.leaves.do(ctx, none{}, scripts.Hold{Key: key, Owner: owners[0]})
}

// Recount is [scripts.Node.Recount].
func (r *Queued) Recount(ctx context.Context, key, owner string, entries int) (bool, error) {
	return r.node.Recount(ctx, key, owner, entries)
}

// Renew is [scripts.Node.Renew].
func (r *Queued) Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []scripts.Answer) error {
	return r.node.Renew(ctx, lease, keys, owners, answers)
}

// Scans is [scripts.Node.Scans].
func (r *Queued) Scans(ctx context.Context, match string) ([]scripts.Scan, error) {
	return r.node.Scans(ctx, match)
}

// EvictionPolicy is [scripts.Node.EvictionPolicy].
func (r *Queued) EvictionPolicy(ctx context.Context) (string, error) {
	return r.node.EvictionPolicy(ctx)
}

// Inbox listens to the grants of key to this locker.
func (r *Queued) Inbox(key string, receive func(string)) *pubsub.Subscription {
	return r.subscriber.SubscribeFunc(r.Fair.Inbox(key), receive)
}

// OwnerChannel listens to Java's wake-ups of owner.
func (r *Queued) OwnerChannel(key, owner string, receive func(string)) *pubsub.Subscription {
	return r.subscriber.SubscribeFunc(r.Fair.OwnerChannel(key, owner), receive)
}
