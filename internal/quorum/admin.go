package quorum

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/scripts"
)

// Inspect returns who holds key on a quorum of nodes; the zero Holder if nobody
// does. A hold's lease and count are what a quorum of nodes say at least.
func (q *Quorum) Inspect(key string) (scripts.Holder, error) {
	var mu sync.Mutex
	var said []scripts.Holder
	err := q.askAll(q.quorum, func(n *node) error {
		h, err := call(q.bounded(0), n, func(ctx context.Context) (scripts.Holder, error) { return n.script.Inspect(ctx, key) })
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, h)
		}
		return err
	})
	mu.Lock()
	defer mu.Unlock()
	for _, h := range said {
		same := slices.DeleteFunc(slices.Clone(said), func(other scripts.Holder) bool { return other.Owner != h.Owner })
		if h.Owner == "" || len(same) < q.quorum {
			continue
		}
		slices.SortFunc(same, func(a, b scripts.Holder) int { return int(b.Remaining - a.Remaining) })
		h.Remaining = same[q.quorum-1].Remaining
		slices.SortFunc(same, func(a, b scripts.Holder) int { return b.Entries - a.Entries })
		h.Entries = same[q.quorum-1].Entries
		return h, nil
	}
	if len(said) >= q.quorum {
		return scripts.Holder{}, nil
	}
	return scripts.Holder{}, err
}

// ForceRelease frees key on all nodes that answer, which must be a quorum. If they
// are fewer, nobody knows what is left: a quorum, or too little for one.
func (q *Quorum) ForceRelease(key string) (existed bool, err error) {
	var mu sync.Mutex
	err = q.askAll(q.quorum, func(n *node) error {
		was, err := call(q.bounded(0), n, func(ctx context.Context) (bool, error) { return n.script.ForceRelease(ctx, key) })
		mu.Lock()
		defer mu.Unlock()
		existed = existed || was
		return err
	})
	mu.Lock()
	defer mu.Unlock()
	if e := (*Error)(nil); errors.As(err, &e) && e.yes > 0 {
		e.outcome = scripts.Unknown
	}
	return existed, err
}

// askAll asks all nodes and waits for their answers; the error, if fewer than need
// are good, says what each said.
func (q *Quorum) askAll(need int, f func(*node) error) error {
	errs := make([]error, len(q.nodes))
	came, fine, unanswered := q.each(q.nodes, f), 0, 0
	for range q.nodes {
		a := <-came
		errs[a.n.index] = a.err
		switch scripts.OutcomeOf(a.err) {
		case scripts.Done:
			fine++
		case scripts.Unknown:
			unanswered++
		}
	}
	if fine >= need {
		return nil
	}
	return q.newError(need, errs, unanswered)
}

// Bootstrap has nodes that nobody has marked since they started marked, as the first
// round would. If nothing is held, it ends all quarantines: of nodes none of which
// has a vote, and that have forgotten nothing since this call looked at them. One
// that votes may have given its vote to a lease that another has forgotten since.
func (q *Quorum) Bootstrap(ctx context.Context, nothingHeld bool) error {
	if q.Unguarded {
		return nil
	}
	if !nothingHeld {
		return q.askAll(q.need, func(n *node) error {
			_, err := n.voting(ctx)
			if errors.As(err, new(noVote)) {
				return nil // which is logged
			}
			return err
		})
	}
	defer func() {
		for _, n := range q.nodes {
			n.guard.forget()
		}
	}()
	epochs, voting := make([]string, len(q.nodes)), atomic.Int32{}
	if err := q.askAll(len(q.nodes), func(n *node) error {
		said, err := n.lookNow(ctx, scripts.Mark, "")
		if err == nil {
			err = n.fit(said)
		}
		if said.Left == 0 {
			voting.Add(1)
		}
		epochs[n.index] = said.Epoch
		return err
	}); err != nil {
		return err
	}
	switch int(voting.Load()) {
	case 0:
	case len(q.nodes):
		return nil
	default:
		return errInUse
	}
	return q.askAll(len(q.nodes), func(n *node) error {
		said, err := n.lookNow(ctx, scripts.Activate, epochs[n.index])
		if err == nil && said.Left != 0 {
			err = errForgot
		}
		return err
	})
}

var (
	errInUse = errors.New("a node votes, so the nodes may be in use: the quarantine of the others goes on; " +
		"if nothing is held, delete the key holdfast_node on all nodes and call again")
	errForgot = judged{errors.New("it was started, emptied or promoted meanwhile"), scripts.Unavailable}
)

// lookNow is a look of its own, whatever is known of the node.
func (n *node) lookNow(ctx context.Context, how scripts.Looking, of string) (scripts.Standing, error) {
	bounded, cancel := context.WithTimeout(ctx, max(n.q.NodeTimeout, time.Second))
	defer cancel()
	return detached(noDeadline{bounded}, n, func(ctx context.Context) (scripts.Standing, error) {
		if how == scripts.Mark {
			said, _, err := n.mark(ctx)
			return said, err
		}
		said, _, err := n.lookTwice(ctx, how, of)
		return said, err
	})
}

// mark looks at the node, and marks it if nobody has, unless most of the others are
// marked for another deployment: the leases of that may be longer than the quarantine
// would be, and its quorums may have no node in common with ours.
func (n *node) mark(ctx context.Context) (scripts.Standing, *scripts.Vote, error) {
	said, vote, err := n.lookTwice(ctx, scripts.Tell, "")
	if err != nil || said.Left >= 0 {
		return said, vote, err
	}
	var mu sync.Mutex
	answered, others, other := 0, 0, error(nil)
	ask, cancel := context.WithTimeout(ctx, n.q.NodeTimeout)
	defer cancel()
	came := n.q.each(n.q.nodes, func(m *node) error {
		if m == n || m.away() {
			return nil
		}
		said, err := m.lookNow(ask, scripts.Tell, "")
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			return err
		case said.Left >= 0 && said.Deployment != n.q.deployment():
			others, other = others+1, m.fit(said)
		}
		answered++
		return nil
	})
	for range n.q.nodes {
		<-came
	}
	if others > 0 && 2*others >= answered {
		return said, nil, other
	}
	return n.lookTwice(ctx, scripts.Mark, "")
}

// lookTwice looks, and once more where the connection is lost: it may have been of
// the time before a restart.
func (n *node) lookTwice(ctx context.Context, how scripts.Looking, of string) (scripts.Standing, *scripts.Vote, error) {
	said, vote, err := n.script.Look(ctx, how, epoch(), n.q.deployment(), of)
	if scripts.OutcomeOf(err) == scripts.Unknown {
		said, vote, err = n.script.Look(ctx, how, epoch(), n.q.deployment(), of)
	}
	return said, vote, err
}

// forget makes the next call look anew.
func (g *guard) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vote, g.why = nil, nil
}

// NodeStatus is how one node stands.
type NodeStatus struct {
	Node string        // its address, without credentials
	Vote bool          // it votes
	Left time.Duration // until it votes, if it has been started, emptied or promoted of late
	Err  error         // why it does not vote, whatever time passes
}

// Nodes asks all nodes how they stand, and changes nothing.
func (q *Quorum) Nodes(ctx context.Context) []NodeStatus {
	all, runs := make([]NodeStatus, len(q.nodes)), make([]string, len(q.nodes))
	came := q.each(q.nodes, func(n *node) error {
		all[n.index], runs[n.index] = n.status(ctx)
		return nil
	})
	for range q.nodes {
		if a := <-came; a.err != nil {
			all[a.n.index] = NodeStatus{Node: a.n.name, Err: a.err}
		}
	}
	for i, n := range q.nodes { // of several that are one server, the first votes
		twin := q.twin(n, runs[i], func(other *node) string { return runs[other.index] })
		if twin != nil && twin.index < i {
			all[i] = NodeStatus{Node: n.name, Err: sameServer{twin, n}}
		}
	}
	return all
}

func (n *node) status(ctx context.Context) (s NodeStatus, run string) {
	s.Node = n.name
	if n.q.Unguarded {
		bounded, cancel := context.WithTimeout(ctx, n.q.NodeTimeout)
		defer cancel()
		vote, err := call(noDeadline{bounded}, n, n.script.Identify)
		if err != nil {
			s.Err = err
			return s, ""
		}
		s.Vote = true
		return s, vote.Run()
	}
	said, err := n.lookNow(ctx, scripts.Tell, "")
	switch {
	case err == nil && said.Epoch == "":
		s.Left = n.q.Longest // nobody has used it yet
		return s, said.Run
	case err == nil:
		err = n.fit(said)
	}
	if s.Err = err; err == nil {
		s.Vote, s.Left = said.Left == 0, max(said.Left, 0)
	}
	if said.Left < 0 && err == nil { // not marked since it restarted
		s.Left = n.q.Longest
	}
	return s, said.Run
}
