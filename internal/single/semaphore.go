package single

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/racing"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/scripts"
)

// Semaphore is a [racing.Backend] of keys that several owners may hold at the same time, on one
// Redis. Acquires go out in batches, and so do releases with what gives up owners. Its other
// methods are those of [wire.Semaphore].
type Semaphore struct {
	*wire.Semaphore
	server
	n        int // permits of a key; immutable
	acquires *batcher[wire.AcquireRequest, wire.AcquireReply]
	releases *batcher[wire.ReleaseRequest, wire.ReleaseReply]
}

// NewSemaphore returns an engine on the Redis of client for keys with n permits, and its backend.
func NewSemaphore(client rueidis.Client, c engine.Config, n int) (*engine.Engine, *Semaphore) {
	c.Holds = engine.ManyHolds
	p := &Semaphore{server: connect(client, c), n: n}
	p.Semaphore = wire.NewSemaphore(p.redis, n)
	p.acquires = newBatcher(p.server, p.Semaphore.Acquire, p.AcquireEach)
	p.releases = newBatcher(p.server, p.Semaphore.Release, p.ReleaseEach)
	return racing.New(p, c), p
}

// Acquire takes a permit, alone or in a batch. If others have agreed on another number, it
// fails.
func (p *Semaphore) Acquire(ctx context.Context, a wire.AcquireRequest) (wire.AcquireReply, error) {
	reply, err := p.acquires.do(ctx, a)
	if err == nil && reply.Agreed != 0 {
		return wire.AcquireReply{}, wire.Judge(&holdfast.PermitsError{Wanted: p.n, Agreed: reply.Agreed}, wire.Refused)
	}
	return reply, err
}

// Release gives back a permit, alone or in a batch.
func (p *Semaphore) Release(ctx context.Context, h wire.ReleaseRequest) (wire.ReleaseReply, error) {
	return p.releases.do(ctx, h)
}

// Subscribe listens to the releases of key.
func (p *Semaphore) Subscribe(name string) racing.Subscription {
	return p.subscriber.Subscribe(scripts.SemaphoreChannel(name))
}
