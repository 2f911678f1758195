package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// check asks the node for its standing. It asks again after a lost connection, which may date from
// before a restart. Without restart guard, it only learns the server's run id.
func (n *node) check(ctx context.Context, how wire.CheckMode, of string) (s wire.Standing, err error) {
	for range 2 {
		if !n.q.Unguarded {
			s, err = n.redis.CheckNode(ctx, how, strings.ReplaceAll(uuid.NewString(), "-", ""), n.q.deployment(), of)
		} else if s.Vote, err = n.redis.Identify(ctx); err == nil {
			s.RunID = s.Vote.RunID()
		}
		if wire.OutcomeOf(err) != wire.Unknown {
			break
		}
	}
	return s, err
}

// observe is a check that changes nothing.
func (n *node) observe(ctx context.Context) (wire.Standing, error) {
	return n.check(ctx, wire.Observe, "")
}

// mark is a check that marks a node without marker. It does not do so if half of the other
// nodes are marked for another deployment. The leases of that deployment may be longer
// than the quarantine would be, and its quorums may share no node with ours.
func (n *node) mark(ctx context.Context) (wire.Standing, error) {
	s, err := n.observe(ctx)
	if err != nil || s.Remaining >= 0 {
		return s, err
	}
	ask := calls.After(ctx, n.q.NodeTimeout)
	answers, others, other := 0, 0, error(nil)
	for a := range each(ask, &n.q.short, n.q.nodes, func(m *node) (wire.Standing, error) {
		if m == n || m.away() {
			return wire.Standing{}, errAway
		}
		return m.checkNow(ask, m.observe)
	}) {
		if a.err == errClosed { // Close has begun: the others were not asked
			return s, calls.ErrNoAnswer
		}
		if a.err != nil {
			continue
		}
		answers++
		if a.reply.Remaining >= 0 && a.reply.Deployment != n.q.deployment() {
			others, other = others+1, a.n.fit(a.reply)
		}
	}
	if others > 0 && 2*others >= answers {
		return s, other
	}
	return n.check(ctx, wire.Mark, "")
}

// checkNow makes a check, whatever is known of the node.
func (n *node) checkNow(ctx context.Context, check func(context.Context) (wire.Standing, error)) (wire.Standing, error) {
	return detach(n.checkContext(ctx), n, check)
}

// checkContext bounds a check, which takes several round trips.
func (n *node) checkContext(base context.Context) context.Context {
	return calls.After(base, max(n.q.NodeTimeout, time.Second))
}

// fit says why a node can never vote as it is, or nil.
func (n *node) fit(reply wire.Standing) error {
	q := n.q
	switch {
	case q.Unguarded:
		return nil
	case reply.RunID == "":
		return refused(errors.New("the server reports no run id: use WithoutRestartGuard"))
	case !wire.AtLeast(reply.Version, 7, 0):
		err := errors.New("Redis before 7.0 keeps scripts over a restart, which would defeat the restart guard: use WithoutRestartGuard")
		return refused(wire.Matching(err, holdfast.ErrOldServer))
	case wire.Evicts(reply.Policy) && !q.Evicting:
		return refused(fmt.Errorf("may evict locks: maxmemory-policy is %q, not noeviction", reply.Policy))
	case reply.MaxLease != q.MaxLease:
		return refused(fmt.Errorf("the longest lease of this deployment is %v, not %v; WithMaxLease says how to change it", reply.MaxLease, q.MaxLease))
	case reply.Nodes != len(q.nodes):
		return refused(fmt.Errorf("this deployment has %d nodes, not %d; New says how to change that", reply.Nodes, len(q.nodes)))
	}
	return nil
}

// sameServer is the error of a node on the same server as another: the two are one vote, and waiting does not change that.
func sameServer(a, b *node) error {
	if a.index > b.index {
		a, b = b, a
	}
	return refused(fmt.Errorf("clients %d (%s) and %d (%s) reach the same server", a.index, a.name, b.index, b.name))
}

// sameServerAs is another node to which of gives the same run id, or nil. A server without a run id
// matches none.
func (q *Quorum) sameServerAs(n *node, run string, of func(*node) string) *node {
	if run == "" {
		return nil
	}
	for _, other := range q.nodes {
		if other != n && of(other) == run {
			return other
		}
	}
	return nil
}
