package rlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/hall"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// single is the hall's backend on one Redis.
type single struct {
	node       *scripts.Node
	subscriber *pubsub.Subscriber
	fencing    bool
	expiry     time.Duration // of fence counters
}

func (r *single) Acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error) {
	if r.fencing {
		return r.node.AcquireFenced(ctx, key, owner, lease, scripts.Fencing{Reserve: numbers, Expiry: r.expiry})
	}
	return r.node.Acquire(ctx, key, owner, lease)
}

func (r *single) AcquireAll(ctx context.Context, keys, owners []string, lease time.Duration) (bool, error) {
	return r.node.AcquireAll(ctx, keys, owners, lease)
}

func (r *single) Recount(ctx context.Context, key, owner string, entries int) (bool, error) {
	return r.node.Recount(ctx, key, owner, entries)
}

func (r *single) Release(ctx context.Context, key, owner string, lastFence int64) (scripts.Released, error) {
	return r.node.Release(ctx, key, owner, lastFence)
}

func (r *single) CleanUp(ctx context.Context, key, owner string) (scripts.Released, error) {
	return r.node.CleanUp(ctx, key, owner)
}

func (r *single) Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []scripts.Answer) error {
	return r.node.Renew(ctx, lease, keys, owners, answers)
}

func (r *single) Subscribe(key string) hall.Subscription {
	return r.subscriber.Subscribe(scripts.Channel(key))
}

// Lost does nothing: one Redis has said itself that the hold is over, or frees it
// within the lease.
func (r *single) Lost(string, string) {}
