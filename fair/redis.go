package fair

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// ordered is the hall's backend with the queues of one Redis.
type ordered struct {
	*scripts.Fair
	node       *scripts.Node
	subscriber *pubsub.Subscriber
}

func (r *ordered) Acquire(ctx context.Context, key, owner string, lease time.Duration, _ int64) (scripts.Acquired, error) {
	return r.Fair.Acquire(ctx, key, owner, lease)
}

func (r *ordered) Recount(ctx context.Context, key, owner string, entries int) (bool, error) {
	return r.node.Recount(ctx, key, owner, entries)
}

func (r *ordered) Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []scripts.Answer) error {
	return r.node.Renew(ctx, lease, keys, owners, answers)
}

func (r *ordered) Inbox(key string, hear func(string)) *pubsub.Subscription {
	return r.subscriber.SubscribeFunc(r.Fair.Inbox(key), hear)
}

func (r *ordered) OwnerChannel(key, owner string, hear func(string)) *pubsub.Subscription {
	return r.subscriber.SubscribeFunc(r.Fair.OwnerChannel(key, owner), hear)
}

func (r *ordered) ParseGrant(message string) (scripts.Grant, bool) {
	return scripts.ParseGrant(message)
}
