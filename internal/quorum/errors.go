package quorum

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Error is a [holdfast.QuorumError] with its judgement.
type Error struct {
	holdfast.QuorumError
	yes       int
	contended bool         // others kept the lock from us: we lack votes, and would have enough with theirs
	of        error        // the error of package holdfast that it matches; nil: the engine derives that from the outcome
	forbidden bool         // without the refusals of the key, it would be no refusal
	outcome   wire.Outcome // of the call
}

func (e *Error) Unwrap() error { return &e.QuorumError }

var (
	errPending = errors.New("has not answered yet")
	errAway    = ownError{errors.New("does not answer"), wire.Unavailable}
	errVoid    = ownError{errors.New("no vote: it has just been started, emptied or promoted"), wire.Unavailable}
	errTaken   = ownError{errors.New("held by another for the moment"), wire.Unavailable}
	errDenied  = ownError{errors.New("the node does not have this hold"), wire.Unavailable}
	errOver    = ownError{errors.New("the round was over"), wire.Refused}
	errGivenUp = ownError{errOver.error, wire.Unavailable} // errOver in the error of a round, which another follows
	errClosed  = ownError{holdfast.ErrClosed, wire.Refused}
)

// ownError is an error of this package, and says nothing of a node.
type ownError struct {
	error
	outcome wire.Outcome
}

func (e ownError) Unwrap() error         { return e.error }
func (e ownError) Outcome() wire.Outcome { return e.outcome }

// quarantine says why a node has no vote.
const quarantine = "it was started, emptied or promoted less than the longest lease ago, or is new (if nothing can be held: DeclareNothingHeld)"

// noVote says why and how long a node has no vote.
type noVote struct{ remaining time.Duration }

func (e noVote) Error() string {
	return fmt.Sprintf("no vote for another %v: %s", e.remaining.Round(time.Millisecond), quarantine)
}

// refused is an answer that waiting cannot cure.
func refused(err error) error { return ownError{err, wire.Refused} }

func (e *Error) Is(target error) bool { return target != nil && target == e.of }

func (e *Error) Error() string {
	if e.of != nil {
		return e.of.Error() + ": " + e.QuorumError.Error()
	}
	return e.QuorumError.Error()
}

// Outcome is the outcome of the call.
func (e *Error) Outcome() wire.Outcome { return e.outcome }

// KeyRefused reports whether enough nodes refuse the user the key to make the difference.
func (e *Error) KeyRefused() bool { return e.forbidden }

// isAnswer reports whether err is the answer of a node.
func isAnswer(err error) bool {
	return err == nil || err == holdfast.ErrHeld || err == errVoid || errors.As(err, new(noVote)) || wire.Replied(err)
}

// newError judges answers with fewer yeses than needed. The error matches ErrNotAcquired if others hold
// the lock on most of the nodes that answered, and the votes could have made a quorum. No vote and a
// refusal are answers. It matches ErrWrongType if so many nodes have something else at the key that no
// quorum is left, and ErrOldServer if so many lack a command, or cannot have the restart guard.
func (q *Quorum) newError(need int, errs []error) *Error {
	e := &Error{QuorumError: holdfast.QuorumError{Need: need}}
	spare, held, answers, wrongType, oldServer, forbidden := len(q.nodes)-need, 0, 0, 0, 0, 0
	outcomes := [wire.Doubtful + 1]int{}
	for i, n := range q.nodes {
		err := errs[i]
		e.Nodes = append(e.Nodes, holdfast.NodeError{Node: n.name, Err: err})
		if isAnswer(err) {
			answers++
		}
		if errors.Is(err, holdfast.ErrWrongType) {
			wrongType++
		}
		if errors.Is(err, holdfast.ErrOldServer) {
			oldServer++
		}
		if wire.KeyRefused(err) {
			forbidden++
		}
		switch err {
		case nil:
			e.yes++
		case holdfast.ErrHeld:
			held++
		default:
			outcomes[wire.OutcomeOf(err)]++
		}
	}
	e.contended = e.yes < need && e.yes+held >= need
	switch {
	case e.contended && 2*held > answers:
		e.of = holdfast.ErrNotAcquired
	case e.contended:
		e.of = holdfast.ErrUnavailable
	case wrongType > spare:
		e.of = holdfast.ErrWrongType
	case oldServer > spare:
		e.of = holdfast.ErrOldServer
	}
	refused, doubtful := outcomes[wire.Refused], outcomes[wire.Doubtful]
	switch {
	case doubtful > 0 && refused+doubtful > spare:
		e.outcome = wire.Doubtful
	case refused > spare:
		e.outcome, e.forbidden = wire.Refused, refused-forbidden <= spare
	case e.yes+doubtful+outcomes[wire.Unknown] >= need:
		e.outcome = wire.Unknown
	default:
		e.outcome = wire.Unavailable
	}
	return e
}
