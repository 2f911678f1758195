package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// Backend is how a lock kind holds keys in Redis, by their names there. All methods may be
// called concurrently.
// [scripts.OutcomeOf] judges their errors. The engine may repeat a call after it lost the
// reply, except Acquire, which it never repeats for the same owner. A backend is also
// [Racing] or [Queued].
type Backend interface {
	// Calls bounds its calls. It is always the same.
	Calls() *calls.Calls
	// Acquire makes owner the holder of key if key is free. With fencing, the hold
	// reserves as many fences as numbers says.
	Acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error)
	// Recount sets the owner's number of entries.
	Recount(ctx context.Context, key, owner string, entries int) (ours bool, err error)
	// Renew pushes out the expiry of many holds; one answer for each.
	Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []scripts.Answer) error
	// Lost reports an owner that may still stand in Redis, as its hold has ended
	// without a release.
	Lost(key, owner string)
}

// Racing is the backend of a lock kind whose processes race for a key that is released.
type Racing interface {
	Backend
	// Release ends the owner's hold, whatever its count. lastFence is the last fence
	// used if reserved ones are left over, else 0.
	Release(ctx context.Context, key, owner string, lastFence int64) (scripts.Released, error)
	// CleanUp undoes an acquire of unknown outcome, even one that arrives later.
	CleanUp(ctx context.Context, key, owner string) (scripts.Released, error)
	// Subscribe listens to the releases of key.
	Subscribe(key string) Subscription
}

// Subscription is a [pubsub.Subscription], or several of them as one.
type Subscription interface {
	State() pubsub.State
	Wake() <-chan struct{}
	Close()
}

// AcquiresAll is a [Racing] that can take several keys in one call.
type AcquiresAll interface {
	AcquireAll(ctx context.Context, keys, owners []string, lease time.Duration) (ok bool, err error)
}

// AsksPolicy is a backend that can ask Redis for its maxmemory-policy.
type AsksPolicy interface {
	EvictionPolicy(ctx context.Context) (string, error)
}

// Settles is a backend that goes on to end holds after its call has returned.
type Settles interface {
	// Settle waits until all holds that are over have ended, or ctx ends. Then it tells remain
	// of each key that may have one of them left. No other call follows.
	Settle(ctx context.Context, remain func(key string, why error))
}

// Queued is the backend of a lock kind that serves its waiters first come, first served,
// from a queue in Redis. The engine may repeat all methods but the last two.
type Queued interface {
	Backend
	// Enter puts owners at the end of the queue, in their order.
	Enter(ctx context.Context, key string, owners ...string) (scripts.Entered, error)
	// Release ends a hold and gives the key to the next waiter. served are the other
	// owners that had the key in its run. doubt says that a call of owner may still arrive.
	Release(ctx context.Context, key, owner string, lastFence int64, doubt bool, served ...string) (scripts.Passed, error)
	// Leave gives up owners, whether they wait or hold; a call of each of the first
	// doubts of them may still arrive.
	Leave(ctx context.Context, key string, doubts int, owners ...string) (scripts.Passed, error)
	// Confirm sets the lease of an owner that Redis has granted key.
	Confirm(ctx context.Context, key, owner string, lease time.Duration) (scripts.Acquired, error)
	// Heartbeat keeps the locker's places, and reports what has become of them.
	Heartbeat(ctx context.Context, asked []scripts.Heartbeat, probed []scripts.Probed) error
	// Inbox listens to the grants of key to this locker.
	Inbox(key string, receive func(message string)) *pubsub.Subscription
	// OwnerChannel listens to Java's wake-ups of owner.
	OwnerChannel(key, owner string, receive func(message string)) *pubsub.Subscription
}
