package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/scripts"
)

// Inspect returns who holds key on a quorum of nodes; the zero Holder if nobody
// does. A hold's lease and count are what a quorum of nodes say at least.
func (q *Quorum) Inspect(key string) (scripts.Holder, error) {
	var mu sync.Mutex
	var said []scripts.Holder
	err := q.askAll(func(n *node) error {
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
		if h.Owner == "" || len(same) < q.need {
			continue
		}
		slices.SortFunc(same, func(a, b scripts.Holder) int { return int(b.Remaining - a.Remaining) })
		h.Remaining = same[q.need-1].Remaining
		slices.SortFunc(same, func(a, b scripts.Holder) int { return b.Entries - a.Entries })
		h.Entries = same[q.need-1].Entries
		return h, nil
	}
	if len(said) >= q.need {
		return scripts.Holder{}, nil
	}
	return scripts.Holder{}, err
}

// ForceRelease frees key on all nodes that answer, which must be a quorum. If they
// are fewer, nobody knows what is left: a quorum, or too little for one.
func (q *Quorum) ForceRelease(key string) (existed bool, err error) {
	var mu sync.Mutex
	err = q.askAll(func(n *node) error {
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

// askAll asks all nodes and waits for their answers; the error, if fewer than a
// quorum answered, says what each said.
func (q *Quorum) askAll(f func(*node) error) error {
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
	if fine >= q.need {
		return nil
	}
	return q.newError(errs, unanswered)
}

// Bootstrap gives fresh nodes their vote at once. The nodes are marked one after
// another, so that of several who begin at once one goes on; and given the vote
// only when all have been marked by this call.
func (q *Quorum) Bootstrap(ctx context.Context) error {
	if q.Unguarded {
		return nil
	}
	began := epoch()
	for i, n := range q.nodes {
		said, _, err := n.lookNow(ctx, scripts.Begin, began, "")
		if err == nil {
			err = n.fit(said)
		}
		switch {
		case err != nil && scripts.OutcomeOf(err) != scripts.Refused && q.established(ctx, began):
			return nil
		case err != nil:
			return fmt.Errorf("multilock: Bootstrap: node %s: %w", n.name, err)
		case !said.Marked && i == 0:
			return q.awaitBegun(ctx)
		case !said.Marked:
			return nil
		}
	}
	for _, n := range q.nodes {
		if _, _, err := n.lookNow(ctx, scripts.Ripen, epoch(), began); err != nil {
			return fmt.Errorf("multilock: Bootstrap: node %s: %w", n.name, err)
		}
		n.guard.forget()
	}
	return nil
}

// established says whether a node has the marker of another call: the nodes are not
// fresh, though one of them is away.
func (q *Quorum) established(ctx context.Context, began string) bool {
	for _, n := range q.nodes {
		said, _, err := n.lookNow(ctx, scripts.Ripen, epoch(), "none")
		if err == nil && said.Epoch != "" && said.Epoch != began {
			return true
		}
	}
	return false
}

// awaitBegun lets another client that has begun go on undisturbed, so that all
// may call Bootstrap when they start. If it does not, a second later there is
// nothing more to wait for than the quarantine.
func (q *Quorum) awaitBegun(ctx context.Context) error {
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	for {
		last := q.nodes[len(q.nodes)-1]
		said, _, err := last.lookNow(ctx, scripts.Ripen, epoch(), "none")
		if err != nil || (said.Epoch != "" && said.Left == 0) {
			for _, n := range q.nodes {
				n.guard.forget()
			}
			return nil
		}
		again := time.NewTimer(5 * time.Millisecond)
		select {
		case <-again.C:
		case <-limit.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// lookNow is a look of its own, whatever is known of the node.
func (n *node) lookNow(ctx context.Context, how scripts.Looking, fresh, began string) (scripts.Standing, *scripts.Vote, error) {
	type answer struct {
		said scripts.Standing
		vote *scripts.Vote
	}
	bounded, cancel := context.WithTimeout(ctx, max(n.q.NodeTimeout, time.Second))
	defer cancel()
	a, err := aside(noDeadline{bounded}, n, func(ctx context.Context) (answer, error) {
		said, vote, err := n.script.Look(ctx, how, fresh, n.q.Longest, began)
		return answer{said, vote}, err
	})
	return a.said, a.vote, err
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
	all := make([]NodeStatus, len(q.nodes))
	came := q.each(q.nodes, func(n *node) error {
		all[n.index] = n.status(ctx)
		return nil
	})
	for range q.nodes {
		if a := <-came; a.err != nil {
			all[a.n.index] = NodeStatus{Node: a.n.name, Err: a.err}
		}
	}
	return all
}

func (n *node) status(ctx context.Context) NodeStatus {
	s := NodeStatus{Node: n.name}
	if n.q.Unguarded {
		bounded, cancel := context.WithTimeout(ctx, n.q.NodeTimeout)
		defer cancel()
		_, s.Err = call(noDeadline{bounded}, n, func(ctx context.Context) (struct{}, error) { return struct{}{}, n.script.Ping(ctx) })
		s.Vote = s.Err == nil
		return s
	}
	said, _, err := n.lookNow(ctx, scripts.Ripen, epoch(), "none")
	switch {
	case err == nil && said.Epoch == "":
		s.Left = n.q.Longest // nobody has used it yet
		return s
	case err == nil:
		err = n.fit(said)
	}
	if s.Err = err; err == nil {
		s.Vote, s.Left = said.Left == 0, max(said.Left, 0)
	}
	if said.Left < 0 && err == nil { // not marked since it restarted
		s.Left = n.q.Longest
	}
	return s
}
