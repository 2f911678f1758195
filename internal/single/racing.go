package single

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/planted"
	"github.com/holdfast-go/holdfast/internal/racing"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// Racing is a [racing.Backend] on one Redis. Acquires go out in batches, and so do releases
// with what gives up owners. Its other methods are those of [scripts.Redis].
type Racing struct {
	*scripts.Redis
	server
	fencing  scripts.Fencing // of a hold with one fence; immutable
	acquires *batcher[scripts.Fencing, scripts.AcquireRequest, scripts.AcquireReply]
	releases *batcher[none, scripts.ReleaseRequest, scripts.ReleaseReply]
}

var _ engine.AsksPolicy = (*Racing)(nil)

// NewRacing returns an engine on the Redis of client, and its backend.
func NewRacing(client rueidis.Client, c engine.Config) (*engine.Engine, *Racing) {
	r := &Racing{server: connect(client, c), fencing: fencing(c)}
	r.Redis = r.redis
	r.acquires = newBatcher(fewOn(r.Redis), r.calls.Go, r.Redis.Acquire, r.AcquireEach)
	r.releases = batchOf(r.server, r.Redis.Release, r.ReleaseEach)
	return racing.New(r, c), r
}

// Configure returns the settings of a locker on client, with their defaults. own takes in the options
// that only its kind has. Configure refuses a client and options that do not make a locker, and its
// errors name what is wrong.
func Configure(client rueidis.Client, kind string, own any, opts []holdfast.Option) (engine.Config, error) {
	c, err := engine.Configure(kind, "New", own, opts)
	switch {
	case err != nil:
	case client == nil:
		err = errs.Invalid("%s: New: client is nil", kind)
	case c.ShardedPubSub != nil && client.Mode() != rueidis.ClientModeCluster:
		err = errs.Invalid("%s: New: WithShardedPubSub: the client is not of a Redis Cluster", kind)
	default:
		err = c.Check()
	}
	return c, err
}

// server is what the backends share: one Redis, and the calls to it.
type server struct {
	redis      *scripts.Redis
	subscriber *pubsub.Subscriber
	calls      *calls.Calls
}

func connect(client rueidis.Client, c engine.Config) (s server) {
	settings := scripts.RedisSettings{Label: c.Label, Replicas: c.Replicas, ReplicaTimeout: c.ReplicaTimeout, Logger: c.Logger}
	settings.Patience = calls.Timeout(c.Lease) / 2 // WAIT has the other half
	clustered := client.Mode() == rueidis.ClientModeCluster
	if clustered {
		settings.Cluster, settings.Shards = cluster.New(client), c.ShardedPubSub
	}
	s.redis = scripts.NewRedisWith(client, settings)
	s = s.withCalls(c)
	if clustered {
		s.subscriber = pubsub.NewCluster(client, settings.Cluster, s.redis.Sharded, c.Logger)
	} else {
		s.subscriber = pubsub.New(client, c.Logger)
	}
	return s
}

// withCalls is s with the calls of another engine.
func (s server) withCalls(c engine.Config) server {
	s.calls = calls.New(c.Lease, s.redis.Server)
	if c.Replicas > 0 {
		s.calls.Block()
	}
	if s.redis.Cluster != nil {
		s.calls.PerServer(s.redis.Cluster.Node)
	}
	return s
}

// fencing returns how a backend hands out fences: one for a hold, which may ask for more.
func fencing(c engine.Config) (f scripts.Fencing) {
	if c.Fencing {
		f = scripts.Fencing{Reserve: 1, Expiry: *c.FenceExpiry}
	}
	return f
}

// Calls are those of the engine and of batches.
func (s *server) Calls() *calls.Calls { return s.calls }

// Abandoned does nothing: the one Redis has ended the hold itself, or frees the key within the
// lease.
func (s *server) Abandoned(string, string) {}

// Close ends the subscriptions.
func (s *server) Close() { s.subscriber.Close() }

// Acquire takes a free key, alone or in a batch.
func (r *Racing) Acquire(ctx context.Context, key, owner string, lease time.Duration, reserve int64) (scripts.AcquireReply, error) {
	f := r.fencing
	f.Reserve *= reserve
	return r.acquires.do(ctx, f, scripts.AcquireRequest{Key: key, Owner: owner, Lease: lease})
}

// Release ends a hold, alone or in a batch.
func (r *Racing) Release(ctx context.Context, h scripts.ReleaseRequest) (scripts.ReleaseReply, error) {
	if planted.ReleaseAny && !h.Doubt {
		_, err := r.ForceRelease(ctx, h.Key)
		return scripts.ReleaseReply{Ours: true}, err
	}
	h.Notify = true
	return r.releases.do(ctx, none{}, h)
}

// Subscribe listens to the releases of key.
func (r *Racing) Subscribe(key string) racing.Subscription {
	return r.subscriber.Subscribe(scripts.Channel(key))
}
