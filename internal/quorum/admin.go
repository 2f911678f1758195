package quorum

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Inspect returns the state of key on a quorum of nodes. It is free if none agrees on a holder.
func (q *Quorum) Inspect(ctx context.Context, key string) (holdfast.Status, error) {
	replies, err := all(ctx, q, q.quorum, func(n *node) (holdfast.Status, error) {
		return call(n, 0, func(ctx context.Context) (holdfast.Status, error) { return n.redis.Inspect(ctx, key) })
	})
	if held := q.agreed(replies); held.Held {
		return held, nil
	}
	return holdfast.Status{}, err
}

// agreed is the state with a holder that a quorum of nodes has, or that of a free key. Its lease and
// count are the largest that a quorum of nodes confirms.
func (q *Quorum) agreed(replies []holdfast.Status) holdfast.Status {
	for _, held := range replies {
		same := slices.DeleteFunc(slices.Clone(replies), func(other holdfast.Status) bool { return other.Owner != held.Owner })
		if !held.Held || len(same) < q.quorum {
			continue
		}
		slices.SortFunc(same, func(a, b holdfast.Status) int { return cmp.Compare(b.Remaining, a.Remaining) })
		held.Remaining = same[q.quorum-1].Remaining
		slices.SortFunc(same, func(a, b holdfast.Status) int { return b.Entries - a.Entries })
		held.Entries = same[q.quorum-1].Entries
		return held
	}
	return holdfast.Status{}
}

// ForceRelease frees key on all nodes that answer, which must be a quorum. With fewer, it
// is not known whether a quorum still has a hold. It goes on after the end of ctx, unheard.
func (q *Quorum) ForceRelease(ctx context.Context, key string) (existed bool, err error) {
	replies, err := all(ctx, q, q.quorum, func(n *node) (bool, error) {
		return call(n, 0, func(ctx context.Context) (bool, error) { return n.redis.ForceRelease(ctx, key) })
	})
	if e := (*Error)(nil); errors.As(err, &e) && e.yes > 0 {
		e.outcome = wire.Unknown
	}
	return slices.Contains(replies, true), err
}

// DeclareNothingHeld marks nodes that have no marker since they started, and ends the quarantines
// of all. It does so only if none of them votes, and none forgets its marker during this call. A
// node that votes may have given its vote to a lease that another node has forgotten since.
func (q *Quorum) DeclareNothingHeld(ctx context.Context) error {
	if q.Unguarded {
		return nil
	}
	defer func() {
		for _, n := range q.nodes {
			n.guard.forget()
		}
	}()
	marked, err := all(ctx, q, len(q.nodes), func(n *node) (wire.Standing, error) {
		s, err := n.checkNow(ctx, n.mark)
		if err == nil {
			err = n.fit(s)
		}
		return s, err
	})
	if err != nil {
		return err
	}
	quarantined := func(s wire.Standing) bool { return s.Remaining != 0 }
	if !slices.ContainsFunc(marked, quarantined) {
		return nil
	}
	if slices.ContainsFunc(marked, func(s wire.Standing) bool { return !quarantined(s) }) {
		return errInUse
	}
	_, err = all(ctx, q, len(q.nodes), func(n *node) (wire.Standing, error) {
		s, err := n.checkNow(ctx, func(ctx context.Context) (wire.Standing, error) {
			return n.check(ctx, wire.Activate, marked[n.index].Incarnation)
		})
		if err == nil && quarantined(s) {
			err = errForgot
		}
		return s, err
	})
	return err
}

var (
	errInUse = errors.New("a node votes, so the nodes may be in use: the quarantine of the others goes on; " +
		"if nothing is held, delete the key holdfast_node on all nodes and call again")
	errForgot = ownError{errors.New("it was started, emptied or promoted meanwhile"), wire.Unavailable}
)

// Nodes returns the state of all nodes, and changes nothing.
func (q *Quorum) Nodes(ctx context.Context) []holdfast.NodeStatus {
	status, runIDs := make([]holdfast.NodeStatus, len(q.nodes)), make([]string, len(q.nodes))
	for a := range each(context.Background(), &q.short, q.nodes, func(n *node) (wire.Standing, error) {
		return n.checkNow(ctx, n.observe)
	}) {
		status[a.n.index], runIDs[a.n.index] = a.n.status(a.reply, a.err), a.reply.RunID
	}
	for i, n := range q.nodes { // of several clients of one server, the first votes
		same := q.sameServerAs(n, runIDs[i], func(other *node) string { return runIDs[other.index] })
		if same != nil && same.index < i {
			status[i] = holdfast.NodeStatus{Node: n.name, Err: sameServer(same, n)}
		}
	}
	return status
}

func (n *node) status(reply wire.Standing, err error) holdfast.NodeStatus {
	s := holdfast.NodeStatus{Node: n.name, Err: err}
	unmarked := !n.q.Unguarded && reply.Incarnation == ""
	if err == nil && !unmarked {
		s.Err = n.fit(reply)
	}
	switch {
	case s.Err != nil:
	case unmarked || reply.Remaining < 0: // no marker, or none since it restarted
		s.Remaining = n.q.MaxLease
	default:
		s.Vote, s.Remaining = reply.Vote != nil, reply.Remaining
	}
	return s
}
