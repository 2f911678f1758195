package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/pubsub"
	"github.com/holdfast-go/holdfast/scripts"
)

// Backend is what a lock kind knows and the engine does not: how a key is held in Redis.
// All methods may be called concurrently. [scripts.OutcomeOf] judges their errors. A call
// whose reply is lost may be repeated, except Acquire, which the engine never repeats for
// the same owner. A backend is also [Racing] or [Queued].
type Backend interface {
	// Acquire makes owner the holder of key if key is free. numbers is how many
	// fences the hold should reserve, for lock kinds that mint them.
	Acquire(ctx context.Context, key, owner string, lease time.Duration, numbers int64) (scripts.Acquired, error)
	// Recount brings the owner's number of entries to the given one.
	Recount(ctx context.Context, key, owner string, entries int) (ours bool, err error)
	// Renew pushes out the expiry of many holds; one answer for each.
	Renew(ctx context.Context, lease time.Duration, keys, owners []string, answers []scripts.Answer) error
	// Lost reports an owner whose hold has ended without a release and may still
	// stand in Redis.
	Lost(key, owner string)
}

// Racing is the backend of a lock kind whose processes race for a key that is released.
type Racing interface {
	Backend
	// Release ends the owner's hold, whatever its count. lastFence is the last
	// number used if reserved ones are left over, else 0.
	Release(ctx context.Context, key, owner string, lastFence int64) (scripts.Released, error)
	// CleanUp undoes an acquire of unknown outcome, also one that arrives later.
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

// Queued is the backend of a lock kind that serves first come, first served: its waiters
// stand in a queue in Redis. All methods but the last three may be repeated.
type Queued interface {
	Backend
	// Enter puts owners at the end of the queue, in their order.
	Enter(ctx context.Context, key string, owners ...string) (scripts.Entered, error)
	// Release ends a hold and gives the key to the next waiter. served are the owners
	// that had the key in the same run. doubt says that a call of owner may still arrive.
	Release(ctx context.Context, key, owner string, lastFence int64, doubt bool, served ...string) (scripts.Passed, error)
	// Leave gives up owners wherever they are; a call of each of the first doubts
	// of them may still arrive.
	Leave(ctx context.Context, key string, doubts int, owners ...string) (scripts.Passed, error)
	// Confirm sets the lease of an owner that was granted key.
	Confirm(ctx context.Context, key, owner string, lease time.Duration) (scripts.Acquired, error)
	// Heartbeat keeps the locker's places, and finds out what has become of them.
	Heartbeat(ctx context.Context, asked []scripts.Heartbeat, probed []scripts.Probed) error
	// Inbox listens to the grants of key to this locker.
	Inbox(key string, receive func(message string)) *pubsub.Subscription
	// OwnerChannel listens to Java's wake-ups of owner.
	OwnerChannel(key, owner string, receive func(message string)) *pubsub.Subscription
	// ParseGrant reads a message of the inbox of key.
	ParseGrant(key, message string) (scripts.Grant, bool)
}
