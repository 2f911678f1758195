package fair

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/gather"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// ordered is the engine's backend with the queues of one Redis. Acquires that come at
// once share a call, and so do releases and what undoes acquires.
type ordered struct {
	*scripts.Fair
	node       *scripts.Node
	subscriber *pubsub.Subscriber
	acquires   *gather.Sharing[struct{}, scripts.Ask, scripts.FairAcquired]
	releases   *gather.Sharing[struct{}, scripts.FairHold, scripts.FairReleased] // those of which no run was served
	leaves     *gather.Sharing[struct{}, scripts.Hold, scripts.FairReleased]     // those of one owner, of which a call may still arrive
}

// newOrdered returns a backend whose shared calls get their time from calls.
func newOrdered(queues *scripts.Fair, node *scripts.Node, subscriber *pubsub.Subscriber, calls *engine.Calls) *ordered {
	r := &ordered{Fair: queues, node: node, subscriber: subscriber}
	r.acquires = gather.NewSharing(r.acquire, r.acquireEach, calls.Go)
	r.releases = gather.NewSharing(r.release, r.releaseEach, calls.Go)
	r.leaves = gather.NewSharing(r.leave, r.leaveEach, calls.Go)
	return r
}

func (r *ordered) Acquire(ctx context.Context, key, owner string, lease time.Duration, _ int64) (scripts.Acquired, error) {
	said, err := r.acquires.Do(ctx, struct{}{}, scripts.Ask{Key: key, Owner: owner, Lease: lease})
	if err == nil {
		err = said.Err
	}
	return said.Acquired, err
}

func (r *ordered) acquire(ctx context.Context, _ struct{}, a scripts.Ask) (said scripts.FairAcquired, err error) {
	said.Acquired, err = r.Fair.Acquire(ctx, a.Key, a.Owner, a.Lease)
	return said, err
}

func (r *ordered) acquireEach(ctx context.Context, _ struct{}, asks []scripts.Ask, answers []scripts.FairAcquired) error {
	return r.Fair.AcquireEach(ctx, asks, answers)
}

func (r *ordered) Release(ctx context.Context, key, owner string, lastFence int64, doubt bool, served ...string) (scripts.Passed, error) {
	if doubt || len(served) > 0 {
		return r.Fair.Release(ctx, key, owner, lastFence, doubt, served...)
	}
	said, err := r.releases.Do(ctx, struct{}{}, scripts.FairHold{Hold: scripts.Hold{Key: key, Owner: owner}, LastFence: lastFence})
	if err == nil {
		err = said.Err
	}
	return said.Passed, err
}

func (r *ordered) release(ctx context.Context, _ struct{}, h scripts.FairHold) (said scripts.FairReleased, err error) {
	said.Passed, err = r.Fair.Release(ctx, h.Key, h.Owner, h.LastFence, false)
	return said, err
}

func (r *ordered) releaseEach(ctx context.Context, _ struct{}, holds []scripts.FairHold, answers []scripts.FairReleased) error {
	return r.Fair.ReleaseEach(ctx, holds, answers)
}

func (r *ordered) Leave(ctx context.Context, key string, doubts int, owners ...string) (scripts.Passed, error) {
	if doubts != 1 || len(owners) != 1 {
		return r.Fair.Leave(ctx, key, doubts, owners...)
	}
	said, err := r.leaves.Do(ctx, struct{}{}, scripts.Hold{Key: key, Owner: owners[0]})
	if err == nil {
		err = said.Err
	}
	return said.Passed, err
}

func (r *ordered) leave(ctx context.Context, _ struct{}, h scripts.Hold) (said scripts.FairReleased, err error) {
	said.Passed, err = r.Fair.Leave(ctx, h.Key, 1, h.Owner)
	return said, err
}

func (r *ordered) leaveEach(ctx context.Context, _ struct{}, holds []scripts.Hold, answers []scripts.FairReleased) error {
	return r.Fair.LeaveEach(ctx, holds, answers)
}

func (r *ordered) Recount(ctx context.Context, key, owner string, entries int) (bool, error) {
	return r.node.Recount(ctx, key, owner, entries)
}

func (r *ordered) Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []scripts.Answer) error {
	return r.node.Renew(ctx, lease, keys, owners, answers)
}

// Lost does nothing: one Redis has said itself that the hold is over, or frees it
// within the lease.
func (r *ordered) Lost(string, string) {}

func (r *ordered) Inbox(key string, hear func(string)) *pubsub.Subscription {
	return r.subscriber.SubscribeFunc(r.Fair.Inbox(key), hear)
}

func (r *ordered) OwnerChannel(key, owner string, hear func(string)) *pubsub.Subscription {
	return r.subscriber.SubscribeFunc(r.Fair.OwnerChannel(key, owner), hear)
}

func (r *ordered) ParseGrant(key, message string) (scripts.Grant, bool) {
	return scripts.ParseGrant(key, message)
}
