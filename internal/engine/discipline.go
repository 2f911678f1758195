package engine

import (
	"context"

	"github.com/holdfast-go/holdfast/scripts"
)

// discipline is how waiters get a key. Racing waiters (race.go) queue here, and the first
// of them races with other processes at each release. Queued waiters (queue.go) stand in a
// queue in Redis. An engine has one discipline.
type discipline interface {
	// arrive makes the calls to Redis that a new waiter makes itself before it sleeps.
	arrive(ctx context.Context, k *keyState, w *waiter)
	// release makes one attempt to end a hold in Redis.
	release(ctx context.Context, d *hold, lastFence int64) (scripts.Released, error)
	// giveUp makes one attempt to undo what an acquire of owner may have left.
	giveUp(ctx context.Context, name, owner string) error

	// The others need the key locked.

	// join: w has become the last waiter.
	join(k *keyState, w *waiter)
	// refused: w, whose first attempt did not succeed, has become the first waiter.
	refused(k *keyState, w *waiter, a attempt)
	// left: the wait of w has ended without the key.
	left(k *keyState, w *waiter)
	// unmet says why a wait that ends now fails, or, if w is nil, an attempt without a wait.
	unmet(k *keyState, w *waiter) error
	// next removes and returns the waiter that gets d after its present section, or nil.
	next(k *keyState, d *hold) *waiter
	// departs: the key is about to be released in Redis.
	departs(k *keyState)
	// released: that attempt is over.
	released(k *keyState, said scripts.Released)
	// lost: d, until now the hold of k, is lost.
	lost(k *keyState, d *hold)
	// settle starts the next waiter, or drops a key that is no longer needed. It follows
	// the end of each call for the key, and of its hold.
	settle(k *keyState)
}
