package engine

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Discipline is how waiters get a key: packages racing and queueing. An engine has one. It
// keeps its state of a key, a waiter or a hold in [Key.State], [Waiter.State] and [Hold.State].
//
//	a call must wait         Join; or, after its first attempt, JoinFirst
//	it gives up              WaitError, WaiterLeft
//	a section ends           Next, if its hold may serve another. Otherwise, or if nobody waits: BeforeRelease, Release,
//	                         AfterRelease, Settle
//	that Release has failed  Release again, in the background. If that is hopeless: HoldLost. Then Settle
//	a hold is lost           HoldLost, Settle; and Release in the background if Redis may still have it
//	an attempt is undone     GiveUp
type Discipline interface {
	// Release makes one attempt to end a hold in Redis.
	Release(ctx context.Context, h *Hold, lastFence int64) (wire.ReleaseReply, error)
	// GiveUp makes one attempt to undo what an acquire of owner may have left.
	GiveUp(ctx context.Context, name, owner string) error

	// The other methods need the key's mutex held.

	// Join: w has become the last waiter. If it returns a ticket, w enters by itself.
	Join(k *Key, w *Waiter) Ticket
	// JoinFirst: w, whose first attempt did not succeed, has become the first waiter. Unless a
	// key has one hold, w may stand behind others that began theirs before.
	JoinFirst(k *Key, w *Waiter, a Attempt)
	// WaiterLeft: the wait of w has ended without the key.
	WaiterLeft(k *Key, w *Waiter)
	// WaitError says why the wait of w fails if it ends now; with a nil w, why an attempt without a
	// wait fails.
	WaitError(k *Key, w *Waiter) error
	// Next removes and returns the waiter that gets h now that a section of it has ended, or nil.
	Next(k *Key, h *Hold) *Waiter
	// BeforeRelease: a hold of the key is about to be released in Redis.
	BeforeRelease(k *Key)
	// AfterRelease: that attempt has ended.
	AfterRelease(k *Key, released wire.ReleaseReply)
	// HoldLost: h, a hold of k until now or until its release began, is lost, or that release has failed.
	HoldLost(k *Key, h *Hold)
	// Settle starts the next waiter, or drops a key that is no longer needed. It follows
	// the end of each call for the key, and of each of its holds.
	Settle(k *Key)
}

// Ticket is what a waiter has for a queue in Redis, before and after it has entered. The waiter's own
// goroutine makes these calls.
type Ticket interface {
	// Enter makes one attempt to enter the queue, before the waiter sleeps.
	Enter(ctx context.Context)
	// Confirm confirms that Redis has granted w the key. It returns neither a lease nor an error if the
	// grant no longer stood: w waits again.
	Confirm(ctx context.Context, w *Waiter) (*holdfast.Lease, error)
	// Decline gives up a grant instead.
	Decline()
}
