package holdfast

import "errors"

// The errors of all kinds of locks, for errors.Is. "Held by another", "Redis failed"
// and "outcome unknown" are three different errors. A context that ended a call is joined
// to what the call knew. What else waiting cannot cure (a wrong password, a missing
// right, a bad argument) matches none of them and is returned as it is.
var (
	// ErrNotAcquired: somebody else has the lock.
	ErrNotAcquired = errors.New("not acquired: held by another")
	// ErrLost: the lease ended before it was unlocked: Redis no longer knows it,
	// or did not answer until its deadline, or its cap was reached. Another may
	// have the lock; what was done under it after Deadline is not protected.
	ErrLost = errors.New("lease lost")
	// ErrReleased: the entry was unlocked before.
	ErrReleased = errors.New("lease already released")
	// ErrWrongType: the key holds something that is not a lock. It was left as it is.
	ErrWrongType = errors.New("the key holds something that is not a lock")
	// ErrClosed: the locker was closed.
	ErrClosed = errors.New("locker closed")
	// ErrQueueFull: as many wait on the key as WithMaxWaiters allows.
	ErrQueueFull = errors.New("too many waiters")
	// ErrUnavailable: Redis failed; the lock was surely not acquired. (What an
	// earlier attempt of the same wait may have left is being undone.)
	ErrUnavailable = errors.New("redis unavailable")
	// ErrUnknown: no answer came, so the outcome is not known. An acquire is
	// being undone in the background; a release goes on in the background for up
	// to a lease, after which the key is free in any case.
	ErrUnknown = errors.New("outcome unknown")
)
