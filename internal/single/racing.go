package single

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// Racing is an [engine.Racing] on one Redis. Acquires go out in batches, and so do releases
// and clean-ups. Its other methods are those of [scripts.Node].
type Racing struct {
	*scripts.Node
	subscriber *pubsub.Subscriber
	fencing    bool
	expiry     time.Duration // of fence counters
	acquires   *batcher[scripts.Fencing, scripts.Ask, scripts.Acquired]
	ends       *batcher[none, scripts.Ending, scripts.Released]
}

// NewRacing returns an engine on the Redis of client, and its backend.
func NewRacing(client rueidis.Client, c engine.Config) (*engine.Engine, *Racing) {
	r := &Racing{fencing: c.Fencing, expiry: *c.FenceExpiry}
	r.Node, r.subscriber, c = connect(client, c)
	r.acquires = newBatcher(fewOn(r.Node), c.Calls.Go, r.acquire, func(ctx context.Context, f scripts.Fencing, asks []scripts.Ask, replies []scripts.Result[scripts.Acquired]) error {
		if r.fencing {
			return r.AcquireEach(ctx, &f, asks, replies)
		}
		return r.AcquireEach(ctx, nil, asks, replies)
	})
	r.ends = newBatcher(fewOn(r.Node), c.Calls.Go, func(ctx context.Context, _ none, e scripts.Ending) (scripts.Released, error) {
		if e.Doubt {
			return r.Node.CleanUp(ctx, e.Key, e.Owner)
		}
		return r.Node.Release(ctx, e.Key, e.Owner, e.LastFence)
	}, alike(r.EndEach))
	return engine.New(r, c), r
}

// connect returns what the backends have in common, and the configuration with what the engine gets of them.
func connect(client rueidis.Client, c engine.Config) (*scripts.Node, *pubsub.Subscriber, engine.Config) {
	s := scripts.NodeSettings{Label: c.Label, Replicas: c.Replicas, ReplicaTimeout: c.ReplicaTimeout, Logger: c.Logger}
	s.Patience = min(c.Lease/6, 2500*time.Millisecond) // half of the time of a call; WAIT has the other half
	clustered := client.Mode() == rueidis.ClientModeCluster
	if clustered {
		s.Cluster, s.Shards = cluster.New(client), c.ShardedPubSub
		c.ServerOf = s.Cluster.Node
	}
	node := scripts.NewNodeWith(client, s)
	c.Calls, c.EvictionPolicy = engine.NewCalls(c.Lease, node.Server), node.EvictionPolicy
	if c.Replicas > 0 {
		c.Calls.Block()
	}
	if clustered {
		c.Calls.PerServer(c.ServerOf)
		return node, pubsub.NewCluster(client, s.Cluster, node.Sharded, c.Logger), c
	}
	return node, pubsub.New(client, c.Logger), c
}

// Close ends the subscriptions. Close the engine first.
func (r *Racing) Close() { r.subscriber.Close() }

// Acquire takes a free key, alone or in a batch.
func (r *Racing) Acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error) {
	f := scripts.Fencing{}
	if r.fencing {
		f = scripts.Fencing{Reserve: numbers, Expiry: r.expiry}
	}
	return r.acquires.do(ctx, f, scripts.Ask{Key: key, Owner: owner, Lease: lease})
}

func (r *Racing) acquire(ctx context.Context, f scripts.Fencing, a scripts.Ask) (scripts.Acquired, error) {
	if r.fencing {
		return r.AcquireFenced(ctx, a.Key, a.Owner, a.Lease, f)
	}
	return r.Node.Acquire(ctx, a.Key, a.Owner, a.Lease)
}

// Release ends a hold, alone or in a batch.
func (r *Racing) Release(ctx context.Context, key, owner string, lastFence int64) (scripts.Released, error) {
	if seed.ReleaseAny {
		_, err := r.Node.ForceRelease(ctx, key)
		return scripts.Released{Ours: true}, err
	}
	return r.ends.do(ctx, none{}, scripts.Ending{Key: key, Owner: owner, Notify: true, LastFence: lastFence})
}

// CleanUp undoes an acquire, alone or in a batch.
func (r *Racing) CleanUp(ctx context.Context, key, owner string) (scripts.Released, error) {
	return r.ends.do(ctx, none{}, scripts.Ending{Key: key, Owner: owner, Notify: true, Doubt: !seed.NoTombstones})
}

// Subscribe listens to the releases of key.
func (r *Racing) Subscribe(key string) engine.Subscription {
	return r.subscriber.Subscribe(scripts.Channel(key))
}

// Lost does nothing: the one Redis has ended the hold itself, or frees the key within the
// lease.
func (r *Racing) Lost(string, string) {}
