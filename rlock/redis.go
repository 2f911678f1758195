package rlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/gather"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// single is the engine's backend on one Redis. Acquires that come at once share a call,
// and so do releases and clean-ups.
type single struct {
	node       *scripts.Node
	subscriber *pubsub.Subscriber
	fencing    bool
	expiry     time.Duration // of fence counters
	acquires   *gather.Sharing[scripts.Fencing, scripts.Ask, scripts.NodeReply]
	releases   *gather.Sharing[struct{}, scripts.Hold, scripts.End] // those without fence numbers to give back
	cleanUps   *gather.Sharing[struct{}, scripts.Hold, scripts.End]
}

// newSingle returns a backend whose shared calls get their time from calls. expiry is that
// of fence counters.
func newSingle(node *scripts.Node, subscriber *pubsub.Subscriber, calls *engine.Calls, fencing bool, expiry time.Duration) *single {
	r := &single{node: node, subscriber: subscriber, fencing: fencing, expiry: expiry}
	r.acquires = gather.NewSharing(r.acquire, r.acquireEach, calls.Go)
	r.releases = gather.NewSharing(r.release, r.releaseEach, calls.Go)
	r.cleanUps = gather.NewSharing(r.cleanUp, r.cleanUpEach, calls.Go)
	return r
}

func (r *single) Acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error) {
	f := scripts.Fencing{}
	if r.fencing {
		f = scripts.Fencing{Reserve: numbers, Expiry: r.expiry}
	}
	said, err := r.acquires.Do(ctx, f, scripts.Ask{Key: key, Owner: owner, Lease: lease})
	if err == nil {
		err = said.Err
	}
	return said.Acquired, err
}

func (r *single) acquire(ctx context.Context, f scripts.Fencing, a scripts.Ask) (said scripts.NodeReply, err error) {
	if r.fencing {
		said.Acquired, err = r.node.AcquireFenced(ctx, a.Key, a.Owner, a.Lease, f)
	} else {
		said.Acquired, err = r.node.Acquire(ctx, a.Key, a.Owner, a.Lease)
	}
	return said, err
}

func (r *single) acquireEach(ctx context.Context, f scripts.Fencing, asks []scripts.Ask, nodeReplies []scripts.NodeReply) error {
	if r.fencing {
		return r.node.AcquireEach(ctx, &f, asks, nodeReplies)
	}
	return r.node.AcquireEach(ctx, nil, asks, nodeReplies)
}

func (r *single) AcquireAll(ctx context.Context, keys, owners []string, lease time.Duration) (bool, error) {
	return r.node.AcquireAll(ctx, keys, owners, lease)
}

func (r *single) Recount(ctx context.Context, key, owner string, entries int) (bool, error) {
	return r.node.Recount(ctx, key, owner, entries)
}

func (r *single) Release(ctx context.Context, key, owner string, lastFence int64) (scripts.Released, error) {
	if lastFence != 0 {
		return r.node.Release(ctx, key, owner, lastFence)
	}
	said, err := r.releases.Do(ctx, struct{}{}, scripts.Hold{Key: key, Owner: owner})
	if err == nil {
		err = said.Err
	}
	return said.Released, err
}

func (r *single) release(ctx context.Context, _ struct{}, h scripts.Hold) (said scripts.End, err error) {
	said.Released, err = r.node.Release(ctx, h.Key, h.Owner, 0)
	return said, err
}

func (r *single) releaseEach(ctx context.Context, _ struct{}, holds []scripts.Hold, ends []scripts.End) error {
	return r.node.ReleaseEach(ctx, holds, ends)
}

func (r *single) CleanUp(ctx context.Context, key, owner string) (scripts.Released, error) {
	said, err := r.cleanUps.Do(ctx, struct{}{}, scripts.Hold{Key: key, Owner: owner})
	if err == nil {
		err = said.Err
	}
	return said.Released, err
}

func (r *single) cleanUp(ctx context.Context, _ struct{}, h scripts.Hold) (said scripts.End, err error) {
	said.Released, err = r.node.CleanUp(ctx, h.Key, h.Owner)
	return said, err
}

func (r *single) cleanUpEach(ctx context.Context, _ struct{}, holds []scripts.Hold, ends []scripts.End) error {
	return r.node.CleanUpEach(ctx, holds, ends)
}

func (r *single) Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []scripts.Answer) error {
	return r.node.Renew(ctx, lease, keys, owners, answers)
}

func (r *single) Subscribe(key string) engine.Subscription {
	return r.subscriber.Subscribe(scripts.Channel(key))
}

// Lost does nothing: one Redis has said itself that the hold is over, or frees it
// within the lease.
func (r *single) Lost(string, string) {}
