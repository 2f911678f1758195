package engine

import (
	"context"

	"github.com/holdfast-go/holdfast/scripts"
)

// discipline is how those that wait for a key get it. Racing waiters (race.go) queue
// here, and the first of them races with other processes whenever the key is released.
// Queued waiters (queue.go) stand in a queue in Redis. An engine has one discipline.
type discipline interface {
	// arrive does what a new waiter itself has to do in Redis before it sleeps.
	arrive(ctx context.Context, k *keyState, w *waiter)
	// release makes one attempt to end a hold in Redis.
	release(ctx context.Context, d *hold, lastFence int64) (scripts.Released, error)
	// giveUp makes one attempt to undo what an acquire of owner may have left.
	giveUp(ctx context.Context, key, owner string) error

	// The others are called with the key locked.

	// join: w, the last waiter, has come.
	join(k *keyState, w *waiter)
	// refused: w, whose first attempt did not succeed, has become the first waiter.
	refused(k *keyState, w *waiter, a attempt)
	// left: the wait of w has ended without the key.
	left(k *keyState, w *waiter)
	// unmet is why a wait that ends now, or an attempt without a wait (w is nil), fails.
	unmet(k *keyState, w *waiter) error
	// next takes out the waiter that may have d after its present section, if there is one.
	next(k *keyState, d *hold) *waiter
	// departs: the key is about to be released in Redis.
	departs(k *keyState)
	// released: that attempt is over.
	released(k *keyState, said scripts.Released)
	// lost: d, which was the hold of k, is lost.
	lost(k *keyState, d *hold)
	// settle is called when a call for the key is over, or its hold has ended: it has
	// the next waiter go on, or drops a key that nobody needs.
	settle(k *keyState)
}
