package single

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/racing"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/scripts"
)

// RLock is a [racing.Backend] on one Redis. Acquires go out in batches, and so do releases
// with what gives up owners. Its other methods are those of [wire.Redis].
type RLock struct {
	*wire.Redis
	server
	acquires *batcher[wire.AcquireRequest, wire.AcquireReply]
	releases *batcher[wire.ReleaseRequest, wire.ReleaseReply]
}

// NewRLock returns an engine on the Redis of client.
func NewRLock(client rueidis.Client, c engine.Config) *engine.Engine {
	return racing.New(newRLock(client, c), c)
}

func newRLock(client rueidis.Client, c engine.Config) *RLock {
	r := &RLock{server: connect(client, c)}
	r.Redis = r.redis
	r.acquires = newBatcher(r.server, r.Redis.Acquire, r.AcquireEach)
	r.releases = newBatcher(r.server, r.Redis.Release, r.ReleaseEach)
	return r
}

// Acquire takes a free key, alone or in a batch.
func (r *RLock) Acquire(ctx context.Context, a wire.AcquireRequest) (wire.AcquireReply, error) {
	return r.acquires.do(ctx, a)
}

// Release ends a hold, alone or in a batch.
func (r *RLock) Release(ctx context.Context, h wire.ReleaseRequest) (wire.ReleaseReply, error) {
	h.Notify = true
	return r.releases.do(ctx, h)
}

// Subscribe listens to the releases of name.
func (r *RLock) Subscribe(name string) racing.Subscription {
	return r.subscriber.Subscribe(scripts.Channel(name))
}
