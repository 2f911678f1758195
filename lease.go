package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/ctxkey"
)

// Lease is what a successful Lock returns: one entry of a hold of a key. It
// lives until Unlock, or until it is lost. Safe for concurrent use.
//
// The lock protects only what its holder does before Deadline, while Done is open. A holder
// that cannot check often enough should guard the resource with Fence.
type Lease struct{ entry Entry }

// Entry implements a [Lease], for authors of a [Locker]. Its methods are those of Lease.
type Entry interface {
	Unlock(ctx context.Context) error
	Bind(ctx context.Context) context.Context
	Done() <-chan struct{}
	Err() error
	Deadline() time.Time
	Fence() int64
	Key() string
	Owner() string
}

// NewLease returns the lease of an entry, for authors of a [Locker].
func NewLease(e Entry) Lease { return Lease{e} }

// LeaseFrom returns the nearest lease that ctx is bound to, of any key and locker, or nil.
// Inside Do, it is the lease of that Do.
func LeaseFrom(ctx context.Context) *Lease {
	l, _ := ctx.Value(ctxkey.Lease{}).(*Lease)
	return l
}

// Unlock ends this entry; the last one of nested entries releases the key. It works even when
// ctx has ended: it always waits for its first attempt, for less than the lease and at most
// 6.25 s, plus a dial of the client if the connection has just been lost. After that, ctx bounds the
// wait.
//
// Errors: nil if the lease lived until now. ErrLost if it had been lost before; ErrReleased
// at a second call; ErrClosed if Close has released it. ErrUnknown if Redis did not answer:
// the release goes on in the background for up to a lease, and after that Redis has freed
// the key in any case; for a nested entry, the count that Redis shows may be too high until
// then. If Redis refuses the release, the unchanged cause; the release goes on in the background, unless
// it can never succeed. The release of a nested entry does not go on: the next nested call or Unlock
// corrects the count. Whatever Unlock returns, the entry has ended.
//
// It costs one round trip, on a quorum one to each node; none if the lock goes to a waiter of the
// same locker, or if other readers of it share the hold.
func (l *Lease) Unlock(ctx context.Context) error { return l.entry.Unlock(ctx) }

// Bind derives a context from ctx. A call of the same locker for the same key with this context
// re-enters the lease. The end of this entry cancels the context, with the reason as its cause.
// Without a bound context, a nested Lock waits for the caller's own outer one, as with
// sync.Mutex.
//
// Goroutines that share a bound context are one owner: the lock does not keep them apart.
// If the entry has ended, the context is already cancelled.
func (l *Lease) Bind(ctx context.Context) context.Context {
	ctx = l.entry.Bind(ctx)
	if LeaseFrom(ctx) != l { // the Entry is not of this module
		ctx = context.WithValue(ctx, ctxkey.Lease{}, l)
	}
	return ctx
}

// Done returns a channel that is closed when this entry ends: by Unlock, at a loss that
// the locker learns of, or at Deadline. A process that is busy or was paused may close it
// late; Err and Deadline are never late.
func (l *Lease) Done() <-chan struct{} { return l.entry.Done() }

// Err returns nil while this entry lives, and after that why it ended: ErrReleased, ErrLost with
// its reason, or ErrClosed. It reads the clock itself, so it is correct even if this process was
// paused.
func (l *Lease) Err() error { return l.entry.Err() }

// Deadline returns the trusted deadline: until then, Redis lets in nobody whom this lease keeps
// out, under the conditions of promise G1 (docs/guarantees.md). Renewals move it later. It carries
// a monotonic clock reading.
func (l *Lease) Deadline() time.Time { return l.entry.Deadline() }

// Fence returns the number of this lease. It is larger than those of all earlier holders of the key;
// nested leases share one, and readers of rwlock may (see there). A resource that remembers the largest
// number it has seen and refuses smaller ones is safe even from a holder that was paused and does not know
// that it has lost the lock. See Kleppmann, How to do distributed locking (2016). Without WithFencing it is 0, and such a
// resource refuses nobody.
func (l *Lease) Fence() int64 { return l.entry.Fence() }

// Key returns the key.
func (l *Lease) Key() string { return l.entry.Key() }

// Owner returns the owner of the hold, as Redis and Inspect show it. Leases that were handed over
// within one locker share it.
func (l *Lease) Owner() string { return l.entry.Owner() }
