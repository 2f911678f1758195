package single

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/cluster"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/pubsub"
)

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
	redis      *wire.Redis
	subscriber *pubsub.Subscriber
	calls      *calls.Calls
}

func connect(client rueidis.Client, c engine.Config) (s server) {
	settings := wire.RedisSettings{Label: c.Label, Replicas: c.Replicas, ReplicaTimeout: c.ReplicaTimeout, Logger: c.Logger}
	settings.Patience = calls.Timeout(c.Lease) / 2 // WAIT has the other half
	clustered := client.Mode() == rueidis.ClientModeCluster
	if clustered {
		settings.Cluster, settings.Shards = cluster.New(client), c.ShardedPubSub
	}
	s.redis = wire.NewRedis(client, settings)
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
	s.calls.Block = c.Replicas > 0
	if s.redis.Cluster != nil {
		s.calls.PerServer = s.redis.Cluster.Node
	}
	return s
}

// Calls are those of the engine and of batches.
func (s *server) Calls() *calls.Calls { return s.calls }

// Abandoned does nothing: the one Redis has ended the hold itself, or frees the key within the
// lease.
func (s *server) Abandoned(string) {}

// Drain does nothing: a call that ends a hold has done so when it returns.
func (s *server) Drain(context.Context, func(string, error)) {}

// Close ends the subscriptions.
func (s *server) Close() { s.subscriber.Close() }
