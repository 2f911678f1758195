package quorum

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// guard is the delayed restart of the Redlock page: a node that may have forgotten locks has
// no vote for the longest lease. Its knowledge is valid until a call gets the answer "no vote".
type guard struct {
	mu       sync.RWMutex
	vote     *wire.Vote    // nil: none, or not known
	why      error         // why there is none
	until    time.Time     // why is valid until then
	checking chan struct{} // closed when the check under way has ended; nil if there is none
	logged   string        // incarnation of the last quarantine in the log
	refusal  string        // the last refusal in the log
	checked  atomic.Int64  // when a check was last begun by refresh, or ended, in ns
}

// checkNodes checks all nodes before the first lock, and later those that have been unused for a
// lease, so that their next round takes no longer than any other. It bounds the wait for a
// node like any call. The wait also ends with ctx, the checks do not.
func (q *Quorum) checkNodes(ctx context.Context) {
	due, first := []*node(nil), !q.checked.Load()
	for _, n := range q.nodes {
		if first || n.unused() && !n.away() {
			due = append(due, n)
		}
	}
	if due == nil {
		return
	}
	// The checks are of q.work, as they are no short work.
	for range each(ctx, &q.work, due, func(n *node) (*wire.Vote, error) { return call(n, 0, n.voting) }) {
	}
	q.checked.Store(true)
}

// voting returns the vote of the node, after a check if it is not known. Concurrent calls
// share a check, which ctx does not cut short.
func (n *node) voting(ctx context.Context) (*wire.Vote, error) {
	g := &n.guard
	if vote := g.current(); vote != nil {
		if !n.unused() {
			n.refresh(vote)
			return vote, nil
		}
		g.dropVote(vote)
	}
	for {
		vote, checking, err := n.known()
		if vote != nil || err != nil {
			return vote, err
		}
		select {
		case <-checking:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// known returns the vote of the node, or why it has none, or the check under way.
func (n *node) known() (*wire.Vote, <-chan struct{}, error) {
	g := &n.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.vote != nil:
		return g.vote, nil, nil
	case g.why != nil && time.Now().Before(g.until):
		return nil, nil, g.why
	case g.checking == nil:
		checking := make(chan struct{})
		if !n.q.work.TryGo(func() { n.learn(checking) }) {
			return nil, nil, errClosed
		}
		g.checking = checking
	}
	return nil, g.checking, nil
}

// learn checks the node, and notes its answer.
func (n *node) learn(done chan struct{}) {
	ctx := n.checkContext(n.q.bounds.Base)
	s, err := n.mark(ctx)
	if err == nil {
		err = n.fit(s)
	}
	refusal := err
	if err == nil && s.Vote != nil {
		if other := n.q.sameServerAs(n, s.Vote.RunID(), (*node).runID); other != nil {
			refusal = sameServer(other, n) // the node still votes, but a round counts the two as one
		}
	}
	g := &n.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	g.checked.Store(int64(n.q.calls.Now()))
	wait := 100 * time.Millisecond
	if err == nil && s.Vote == nil {
		err = ownError{noVote{s.Remaining}, wire.Unavailable} // it will vote later
		wait = min(s.Remaining, time.Second)
		if g.logged != s.Incarnation {
			g.logged = s.Incarnation
			n.q.Logger.Warn("holdfast: multilock: a node has no vote yet: "+quarantine, "node", n.name, "for", s.Remaining)
		}
	}
	if err != nil {
		s.Vote = nil
	}
	if wire.OutcomeOf(refusal).Final() && g.refusal != refusal.Error() {
		g.refusal = refusal.Error()
		n.q.Logger.Warn("holdfast: multilock: a node cannot vote", "node", n.name, "error", g.refusal)
	}
	g.vote, g.why, g.until = s.Vote, err, time.Now().Add(wait)
	g.checking = nil
	close(done)
}

// unused reports whether the last check is more than a lease ago: the node has been unused since,
// and the changes that refresh looks for may have happened.
func (n *node) unused() bool {
	last := n.guard.checked.Load()
	return last != 0 && n.q.calls.Now()-time.Duration(last) > n.q.Lease
}

// refresh checks in the background that a vote is still good, if the last check is half a
// lease ago: the node may have been set to evict, or its address may lead to another server.
// No call waits for it.
func (n *node) refresh(vote *wire.Vote) {
	now, last := int64(n.q.calls.Now()), n.guard.checked.Load()
	if time.Duration(now-last) < n.q.Lease/2 || !n.guard.checked.CompareAndSwap(last, now) {
		return
	}
	n.q.work.TryGo(func() {
		good, err := call(n, 0, func(ctx context.Context) (bool, error) {
			reply, good, err := n.redis.CheckVote(ctx, vote, n.q.deployment())
			return good && n.fit(reply) == nil, err
		})
		if err == nil && !good {
			n.guard.dropVote(vote)
		}
	})
}

// dropVote forgets a vote that the node no longer knows.
func (g *guard) dropVote(v *wire.Vote) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.vote == v {
		g.vote, g.why = nil, nil
	}
}

// forget makes the next call check again.
func (g *guard) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.vote, g.why = nil, nil
}

// current is the vote if it is known, otherwise nil.
func (g *guard) current() *wire.Vote {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.vote
}

// runID is the run id of the node's server if its vote is known, otherwise "".
func (n *node) runID() string {
	if vote := n.guard.current(); vote != nil {
		return vote.RunID()
	}
	return ""
}
