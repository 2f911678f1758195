package holdfast

import (
	"errors"
	"fmt"
	"strings"
)

// The errors of all kinds of locks, for errors.Is: what a call returns has the key in its
// text as well. "Held by another", "Redis failed" and "outcome unknown" are three different
// errors. A context that ended a call is joined to what the call knew. What else waiting
// cannot cure (a wrong password, a missing right, a bad argument) matches none of them.
var (
	// ErrNotAcquired: another has the lock. The text says so where that is this locker
	// itself: perhaps the caller, which has forgotten a bound context.
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
	// ErrQueueFull: as many wait for the key as WithMaxWaiters allows.
	ErrQueueFull = errors.New("too many waiters")
	// ErrUnavailable: Redis failed; the lock was surely not acquired. (What an
	// earlier attempt of the same wait may have left is being undone.)
	ErrUnavailable = errors.New("redis unavailable")
	// ErrUnknown: no answer came, so the outcome is not known. An acquire is
	// being undone in the background; a release goes on in the background for up
	// to a lease, after which the key is free in any case.
	ErrUnknown = errors.New("outcome unknown")
)

// QuorumError is how a call of multilock fails for which too few nodes said yes; it is
// found by errors.As. It matches ErrNotAcquired only where most of the nodes that answered
// have the lock held by others, and those that answered could have made a quorum; else
// ErrUnavailable or ErrUnknown, or none of them where no quorum is left that does not
// refuse.
type QuorumError struct {
	Nodes []NodeError // in the order of the clients
	Need  int         // how many nodes had to say yes
}

// NodeError is what one node said.
type NodeError struct {
	Node string // its address, without credentials
	Err  error  // nil: yes; multilock.ErrHeld: held by another; else why it said neither
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
