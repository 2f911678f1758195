package holdfast

import (
	"errors"
	"fmt"
	"strings"
)

// The errors of all lock kinds, for errors.Is. The errors that calls return also name the
// key. If a context ends a call, its error is joined with one of these; if it had ended before
// the call, the call returns its error alone. Other errors that waiting cannot cure (a wrong
// password, a missing right) match none of them.
var (
	// ErrNotAcquired: another owner has the lock, or all permits are taken (semaphore), or other waiters
	// come first (fair, rwlock). If it is known, the text says who has it, as last seen: a label (see
	// [WithLabel] and [Label]), "another", or this locker itself. That may be the caller itself, if it did
	// not pass a bound context.
	ErrNotAcquired = errors.New("not acquired")
	// ErrLost: the lease ended before it was unlocked. Redis no longer knew it, or did not
	// answer until its deadline, or its cap or its fixed end was reached. Another may have the
	// lock, which no longer protects what its holder does after Deadline.
	ErrLost = errors.New("lease lost")
	// ErrUpgrade: the call asks for the write lock on a context that is bound to a read lease on
	// the key. It would deadlock: unlock the read lease first, or take the write lock from the
	// start.
	ErrUpgrade = errors.New("a reader cannot become a writer")
	// ErrReleased: the lease was unlocked before.
	ErrReleased = errors.New("lease already released")
	// ErrWrongType: the key holds data of an application, or a lock with another layout: rlock and fair
	// share one, rwlock and semaphore each have their own. The call did not change it.
	ErrWrongType = errors.New("the key holds something other than a lock of this kind")
	// ErrOldServer: the server lacks a command that came with Redis 6.2, or it is older than Redis
	// 7.0 and the locker is a multilock with its restart guard; see
	// multilock.WithoutRestartGuard. The locker finds out before it sends a server the
	// text of a script: the first call fails, and takes no lock.
	ErrOldServer = errors.New("the server is too old: holdfast needs Redis 6.2 or later, multilock with its restart guard 7.0")
	// ErrInvalidArgument: a key, an option or another argument is not allowed; the text names
	// it. Nothing was sent.
	ErrInvalidArgument = errors.New("invalid argument")
	// ErrClosed: the locker was closed.
	ErrClosed = errors.New("locker closed")
	// ErrTooManyWaiters: the key has as many waiters as WithMaxWaiters allows.
	ErrTooManyWaiters = errors.New("too many waiters")
	// ErrUnavailable: Redis failed; the lock was definitely not acquired. (The effects of an
	// earlier attempt of the same wait are being undone.)
	ErrUnavailable = errors.New("redis unavailable")
	// ErrUnknown: the outcome is not known, as no answer came, or none in time to trust the
	// lease. From a lock call: the lock is not held, and what the call may have done is being
	// undone in the background. From Unlock: the release goes on in the background for up to a
	// lease, after which the key is free in any case.
	ErrUnknown = errors.New("outcome unknown")
	// ErrNotReplicated: fewer replicas than WithReplicas asks for had the lock, or the
	// nested entry, in time. It comes with ErrUnknown; what the call took is being undone.
	ErrNotReplicated = errors.New("not on enough replicas")
)

// PermitsError, as *PermitsError, is the error of a semaphore's lock call, for errors.As, if others use the
// key with another number of permits. The call took nothing. They disagree as long as any permit is taken, or
// until an operator sets the number; see semaphore.Locker.Resize.
type PermitsError struct {
	Wanted int // by this locker: the n of semaphore.New
	Agreed int // by those that use the key
}

func (e *PermitsError) Error() string {
	return fmt.Sprintf("%d permits wanted, but others use the key with %d", e.Wanted, e.Agreed)
}

// ErrHeld, in a [QuorumError], is the answer of a node on which another owner holds the lock. No call
// returns it: see [ErrNotAcquired].
var ErrHeld = errors.New("held by another")

// QuorumError, as *QuorumError, is the error of a multilock call to which too few nodes said yes, for
// errors.As. It matches ErrNotAcquired only if others hold the lock on most of the nodes
// that answered, and if these could have been a quorum. Otherwise it matches ErrUnavailable or
// ErrUnknown, or none of them if so many nodes refused that no quorum is left.
type QuorumError struct {
	Nodes []NodeError // in the order of the clients
	Need  int         // how many nodes had to say yes
}

// NodeError is the answer of one node.
type NodeError struct {
	Node string // its address, without credentials
	Err  error  // nil: yes; matches ErrHeld: held by another; otherwise why it said neither
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	yes := 0
	for _, n := range e.Nodes {
		what := "yes"
		if n.Err == nil {
			yes++
		} else {
			what = n.Err.Error()
		}
		fmt.Fprintf(&b, "; %s: %s", n.Node, what)
	}
	return fmt.Sprintf("%d of %d nodes said yes, %d are needed%s", yes, len(e.Nodes), e.Need, b.String())
}
