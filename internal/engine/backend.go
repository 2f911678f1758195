package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// Backend is how a lock kind holds keys in Redis, by their names there. All methods may be
// called concurrently. [wire.OutcomeOf] says what their errors mean. The engine may repeat a call
// after it lost the reply, except Acquire, which it never repeats for the same owner. Its
// [Discipline] needs more of it.
type Backend interface {
	// Calls bounds its calls. It is always the same.
	Calls() *calls.Calls
	// Acquire makes an owner the holder of a name if that is free.
	Acquire(ctx context.Context, a wire.AcquireRequest) (wire.AcquireReply, error)
	// SetEntries sets the owner's entries.
	SetEntries(ctx context.Context, name, owner string, entries wire.Entries) (ours bool, err error)
	// Renew extends the expiry of many holds; one answer for each.
	Renew(ctx context.Context, lease time.Duration, names, owners []string, answers []watchdog.Answer) error
	// Abandoned reports an owner whose hold was lost, or that the engine no longer tries to release or undo.
	// Redis may still have it.
	Abandoned(owner string)

	// Inspect returns the state of name, without the key.
	Inspect(ctx context.Context, name string) (holdfast.Status, error)
	// InspectEach is Inspect for each of names.
	InspectEach(ctx context.Context, names []string) ([]wire.Result[holdfast.Status], error)
	// Scans returns what reads the names that match a pattern of SCAN.
	Scans(ctx context.Context, match string) ([]wire.Scan, error)
	// ForceRelease frees name from any holder, and reports whether it was held.
	ForceRelease(ctx context.Context, name string) (existed bool, err error)

	// EvictionPolicy is the maxmemory-policy of Redis; "" if that is not known, or the backend itself sees to it.
	EvictionPolicy(ctx context.Context) (string, error)

	// Drain waits until all holds that are over have ended, or ctx ends. Then it reports to
	// remain each name that may have one of them left. Only Close follows.
	Drain(ctx context.Context, remain func(name string, why error))
	// Close ends what the backend has besides calls, such as subscriptions. No call follows. Of two
	// halves, which share these, only the backend of the writers is closed.
	Close()
}

// AcquiresAll is of a [Backend] that can take several keys in one call, with one lease and one label.
type AcquiresAll interface {
	AcquireAll(ctx context.Context, asks []wire.AcquireRequest) (ok bool, err error)
}

// ReaderBackend is what the [Backend] of readers has besides; their engine has [SharedHolds].
type ReaderBackend interface {
	// MayShare reports whether later readers may share the hold of owner, whose tenure is over: no writer waits.
	MayShare(ctx context.Context, name, owner string) (bool, error)
}
