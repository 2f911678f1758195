package rlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/gather"
	"github.com/holdfast-go/holdfast/internal/hall"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// single is the hall's backend on one Redis. Acquires that come at once share a call,
// and so do releases.
type single struct {
	node       *scripts.Node
	subscriber *pubsub.Subscriber
	fencing    bool
	expiry     time.Duration // of fence counters
	acquires   gather.Sharing[scripts.Fencing, scripts.Ask, scripts.Acquired]
	releases   gather.Sharing[struct{}, scripts.Hold, scripts.Released] // those without fence numbers to give back
}

// share has what comes at once share calls, for which the hall finds the time.
func (r *single) share(h *hall.Hall) {
	r.acquires.One, r.acquires.Many, r.acquires.Aside = r.acquire, r.acquireEach, h.Go
	r.releases.One, r.releases.Many, r.releases.Aside = r.release, r.releaseEach, h.Go
}

func (r *single) Acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error) {
	f := scripts.Fencing{}
	if r.fencing {
		f = scripts.Fencing{Reserve: numbers, Expiry: r.expiry}
	}
	return r.acquires.Do(ctx, f, scripts.Ask{Key: key, Owner: owner, Lease: lease})
}

func (r *single) acquire(ctx context.Context, f scripts.Fencing, a scripts.Ask) (scripts.Acquired, error) {
	if r.fencing {
		return r.node.AcquireFenced(ctx, a.Key, a.Owner, a.Lease, f)
	}
	return r.node.Acquire(ctx, a.Key, a.Owner, a.Lease)
}

func (r *single) acquireEach(ctx context.Context, f scripts.Fencing, asks []gather.Asking[scripts.Ask, scripts.Acquired]) error {
	all, ballots := make([]scripts.Ask, len(asks)), make([]scripts.Ballot, len(asks))
	for i, a := range asks {
		all[i] = a.Ask
	}
	fencing := &f
	if !r.fencing {
		fencing = nil
	}
	err := r.node.AcquireEach(ctx, fencing, all, ballots)
	for i, b := range ballots {
		asks[i].Answer, asks[i].Err = b.Acquired, b.Err
	}
	return err
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
	return r.releases.Do(ctx, struct{}{}, scripts.Hold{Key: key, Owner: owner})
}

func (r *single) release(ctx context.Context, _ struct{}, h scripts.Hold) (scripts.Released, error) {
	return r.node.Release(ctx, h.Key, h.Owner, 0)
}

func (r *single) releaseEach(ctx context.Context, _ struct{}, asks []gather.Asking[scripts.Hold, scripts.Released]) error {
	holds, ends := make([]scripts.Hold, len(asks)), make([]scripts.End, len(asks))
	for i, a := range asks {
		holds[i] = a.Ask
	}
	err := r.node.ReleaseEach(ctx, holds, ends)
	for i, e := range ends {
		asks[i].Answer, asks[i].Err = e.Released, e.Err
	}
	return err
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
