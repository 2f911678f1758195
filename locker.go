package holdfast

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"time"
)

// Locker is the interface for code that needs locks. The Locker of each lock kind satisfies it,
// and [Operator] as well. That of rwlock is for writers; its RLocker is a Locker for readers.
// The methods of each kind document the order of waiters and the round trips. Package
// holdfasttest has doubles for tests. Other kinds of locks make their leases with [NewLease].
type Locker interface {
	// Do locks key as Lock does, runs f and unlocks, even when f panics or ends its
	// goroutine. The context that f gets is bound to the lease, see [Lease.Bind].
	//
	// If the lock was not acquired, Do returns the error of Lock and does not run f.
	// Otherwise it returns f's error, joined with ErrLost if the lock was lost while f ran,
	// or with the error of whatever else ended the lease before f ended: ErrReleased,
	// ErrClosed, or ErrWrongType if the key was overwritten. A release that failed or got no
	// answer is not an error of Do, as f ran under the lock. It goes on in the background,
	// the key is free within a lease, and logger and observer report it. Do waits for it as
	// Unlock does.
	Do(ctx context.Context, key string, f func(context.Context) error, opts ...LockOption) error

	// Lock waits until it has key or ctx ends. A deadline of ctx bounds the wait, not the
	// hold. If ctx is bound to a live lease of this locker on key, Lock re-enters that
	// lease instead. The wait rides out restarts of Redis.
	//
	// After a failure nothing is held, and the effects of an unanswered call are being
	// undone. Errors: the context's, joined with ErrNotAcquired, ErrUnavailable or
	// ErrUnknown as far as known; ErrUnavailable or ErrUnknown, perhaps joined with
	// ErrNotReplicated, when Redis was unavailable for longer than WithMaxOutage;
	// ErrTooManyWaiters; ErrClosed; on a bound context ErrLost, ErrReleased or ErrClosed if its
	// lease has ended. Errors that waiting cannot cure come
	// immediately: ErrInvalidArgument, ErrUpgrade, ErrWrongType, ErrOldServer, a *PermitsError,
	// and unchanged refusals by Redis.
	//
	// If the connection has just been lost, a call may outlast ctx by the time that the
	// client takes to dial.
	Lock(ctx context.Context, key string, opts ...LockOption) (*Lease, error)

	// TryLock makes one attempt. It asks Redis only if nobody of this locker has key, asks or
	// waits for it, or is releasing it. Otherwise it returns ErrNotAcquired or, while Redis does
	// not answer the waiters here, their error. Semaphores and readers of rwlock, which need not
	// exclude each other, may still ask. Like Lock, it re-enters a lease that ctx is bound to.
	//
	// Its errors are those of Lock; ErrNotAcquired if another has the lock,
	// ErrUnavailable if Redis did not take the call, ErrUnknown if it did not answer.
	TryLock(ctx context.Context, key string, opts ...LockOption) (*Lease, error)

	// TryLockFor is Lock with a wait of at most the given time. After that it fails with
	// ErrNotAcquired, or with ErrUnavailable or ErrUnknown if Redis is unavailable. A wait
	// of zero is TryLock; a negative one is refused.
	TryLockFor(ctx context.Context, key string, wait time.Duration, opts ...LockOption) (*Lease, error)
}

// Operator is what the Locker of every kind can also do, for the code that made it.
type Operator interface {
	// Inspect returns the holder of key. Errors: ErrUnavailable or ErrUnknown if Redis does
	// not answer; ErrClosed; an unchanged refusal by Redis.
	Inspect(ctx context.Context, key string) (Status, error)

	// Locks returns an iterator over the held locks whose keys begin with prefix, in no particular order. It
	// covers this locker's Redis and prefix, including locks of Redisson. It yields each lock once, as
	// it was when Redis was asked. It leaves out what is no lock of this kind (ErrWrongType), and a free key
	// for which others wait.
	//
	// It reads all names that Redis has in small steps (SCAN), on a Redis Cluster those of every
	// master. It yields each lock that is held throughout, unless its server restarts or fails
	// over meanwhile, or its slot moves. It may yield a lock that comes or goes meanwhile.
	//
	// Errors are those of Inspect. What was yielded before stays correct. An error names the key
	// that Redis refuses, whose Status has only the key, or the master of a Redis Cluster that
	// failed; a loop that goes on gets the locks of the other keys or masters. The loop ends by
	// itself when ctx does.
	Locks(ctx context.Context, prefix string) iter.Seq2[Status, error]

	// ForceUnlock, for operators, frees key from any holder and reports whether it was
	// held. A lease that this locker had before the call ends immediately. Another holder
	// learns of it at its next renewal, or never with a fixed lease, and believes in its
	// lease until then. ForceUnlock fails, and changes nothing, if the key is not a lock
	// but data of an application, or a lock of another layout. ErrUnknown: the key may or
	// may not be free. Other errors are those of Inspect.
	ForceUnlock(ctx context.Context, key string) (held bool, err error)

	// Close releases what is held, ends leases and waits with ErrClosed, and waits for the
	// locker's goroutines. While Redis does not answer, it tries again, for a bounded time.
	// Then it returns ErrUnknown, joined with the cause: the text names up to ten keys of
	// which a lease or a waiter may be left. They free themselves within their leases. A second
	// Close waits for the first, and returns nil.
	Close() error
}

// Status is the state of a key at one moment, as Redis sees it. Readers of a process may share one hold,
// and Redisson's threads have one each. Waiting counts dead waiters of fair, too, until they are removed.
type Status struct {
	Key       string
	Held      bool
	Owner     string        // Redisson's included; "" if free; of semaphore, the one whose lease ends first
	Label     string        // of the owner, see [WithLabel] and [Label]; "" for Redisson's
	Mode      string        // of rwlock: read or write; "" if free
	Readers   int           // of rwlock: how many holds readers have, Owner's included unless it writes
	Entries   int           // levels of nesting, of Owner; 0 if free
	Remaining time.Duration // until the lease ends if it is not renewed; negative: it has no end
	Waiting   int           // of fair: how many wait in all processes; of semaphore: in this locker; otherwise 0
	Permits   int           // of semaphore: how many there are; 0 if nobody holds one and no Resize has set them
	Holders   []Holder      // of semaphore: all of them, the first to end first
}

// Holder is one of several holders of a key.
type Holder struct {
	Owner     string
	Label     string        // see [WithLabel] and [Label]
	Entries   int           // levels of nesting
	Remaining time.Duration // until the lease ends if it is not renewed
}

// String describes the state for logs, without owners and their labels.
func (s Status) String() string {
	if s.Held && s.Permits > 0 {
		return fmt.Sprintf("%d of %d permits taken, %v until one ends, %d waiting here", len(s.Holders), s.Permits, s.Remaining, s.Waiting)
	}
	if !s.Held {
		return fmt.Sprintf("free, %d waiting", s.Waiting)
	}
	remaining := "no end"
	if s.Remaining >= 0 {
		remaining = s.Remaining.String()
	}
	if s.Mode != "" {
		return fmt.Sprintf("held in mode %s, readers: %d, remaining: %s", s.Mode, s.Readers, remaining)
	}
	return fmt.Sprintf("held, entries: %d, remaining: %s, waiting: %d", s.Entries, remaining, s.Waiting)
}

// GoString is String.
func (s Status) GoString() string { return s.String() }

// LogValue is String.
func (s Status) LogValue() slog.Value { return slog.StringValue(s.String()) }

// NodeStatus is the state of one node; see Nodes of multilock.
type NodeStatus struct {
	Node      string        // its address, without credentials
	Vote      bool          // it votes
	Remaining time.Duration // until it votes, if it has just been started, emptied or promoted
	Err       error         // why it will not vote, however long you wait
}
