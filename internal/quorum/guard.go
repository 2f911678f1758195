package quorum

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/scripts"
)

// guard is the delayed restart of the Redlock paper: a node that may have
// forgotten locks has no vote for the longest lease. What it knows is good until
// a call is answered with "no vote".
type guard struct {
	mu      sync.RWMutex
	vote    *scripts.Vote // nil: none, or not known
	why     error         // why there is none
	until   time.Time     // until when why is not asked again
	looking chan struct{} // closed when the look under way is over; nil if there is none
	told    string        // epoch of the quarantine that was logged
	refusal string        // that was logged
	looked  atomic.Int64  // when a look began last, in ns since q.made
}

var (
	errOld     = errors.New("Redis before 7 keeps scripts over a restart, which the restart guard relies on not to happen")
	errNoRunID = errors.New("the server tells no run id: use WithoutRestartGuard")
)

// quarantined is why a node has no vote.
const quarantined = "it was started, emptied or promoted less than the longest lease ago, or is new (if nothing can be held: Bootstrap with NothingHeld)"

// noVote says why and how long a node has no vote.
type noVote struct {
	left time.Duration
}

func (e noVote) Error() string {
	return fmt.Sprintf("no vote for another %v: %s", e.left.Round(time.Millisecond), quarantined)
}

// Outcome is that of a node which may vote later.
func (noVote) Outcome() scripts.Outcome { return scripts.Unavailable }

// refused is an answer that waiting does not cure.
func refused(err error) error { return judged{err, scripts.Refused} }

// voting returns the vote of the node, after a look if it is not known. Of those
// who come at once, one looks. The look itself is not cut short by ctx.
func (n *node) voting(ctx context.Context) (*scripts.Vote, error) {
	g := &n.guard
	if vote := g.present(); vote != nil {
		if !n.stale() {
			n.refresh(vote)
			return vote, nil
		}
		g.revoke(vote)
	}
	for {
		g.mu.Lock()
		if g.vote != nil {
			defer g.mu.Unlock()
			return g.vote, nil
		}
		if g.why != nil && time.Now().Before(g.until) {
			defer g.mu.Unlock()
			return nil, g.why
		}
		looking := g.looking
		if looking == nil {
			looking = make(chan struct{})
			g.looking = looking
			if !n.q.spawn(func() { n.look(looking) }) {
				g.looking = nil
				g.mu.Unlock()
				return nil, errClosed
			}
		}
		g.mu.Unlock()
		select {
		case <-looking:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// stale says whether the last look is more than a lease ago: nobody has used the node
// since, and what refresh looks for may have come to be.
func (n *node) stale() bool {
	last := n.guard.looked.Load()
	return last != 0 && time.Since(n.q.made)-time.Duration(last) > n.q.Lease
}

// refresh looks in the background whether a vote is still good, where the last look
// is half a lease ago: the node may have been told to evict, and an address may lead to
// another server. No call waits for it.
func (n *node) refresh(vote *scripts.Vote) {
	now, last := int64(time.Since(n.q.made)), n.guard.looked.Load()
	if time.Duration(now-last) < n.q.Lease/2 || !n.guard.looked.CompareAndSwap(last, now) {
		return
	}
	n.q.spawn(func() {
		type answer struct {
			said scripts.Standing
			good bool
		}
		a, err := call(n.q.bounded(0), n, func(ctx context.Context) (answer, error) {
			said, good, err := n.script.Check(ctx, vote, n.q.deployment())
			return answer{said, good}, err
		})
		if err == nil && (!a.good || !n.q.Unguarded && n.fit(a.said) != nil) {
			n.guard.revoke(vote)
		}
	})
}

// revoke forgets a vote that the node does not know any more.
func (g *guard) revoke(v *scripts.Vote) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.vote == v {
		g.vote, g.why = nil, nil
	}
}

// run is the id of the node's server, as far as its vote is known.
func (n *node) run() string {
	if vote := n.guard.present(); vote != nil {
		return vote.Run()
	}
	return ""
}

// present is the vote as far as known.
func (g *guard) present() *scripts.Vote {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.vote
}

// look asks the node, and notes what it said.
func (n *node) look(done chan struct{}) {
	ctx, cancel := context.WithTimeout(n.q.base, max(n.q.NodeTimeout, time.Second))
	defer cancel()
	said, vote, err := scripts.Standing{}, (*scripts.Vote)(nil), error(nil)
	if n.q.Unguarded {
		if vote, err = n.script.Identify(noDeadline{ctx}); scripts.OutcomeOf(err) == scripts.Unknown { // as lookTwice
			vote, err = n.script.Identify(noDeadline{ctx})
		}
	} else if said, vote, err = n.mark(noDeadline{ctx}); err == nil {
		err = n.fit(said)
	}
	refusal := err
	if err == nil && vote != nil {
		if twin := n.q.twin(n, vote.Run(), (*node).run); twin != nil {
			refusal = sameServer{twin, n} // which is for those who count its votes
		}
	}
	g := &n.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	g.looked.Store(int64(time.Since(n.q.made)))
	wait := 100 * time.Millisecond
	if err == nil && vote == nil {
		err = noVote{said.Left}
		wait = min(said.Left, time.Second)
		if g.told != said.Epoch {
			g.told = said.Epoch
			n.q.Log.Warn("multilock: a node has no vote yet: "+quarantined, "node", n.name, "for", said.Left)
		}
	}
	if err != nil {
		vote = nil
	}
	if scripts.OutcomeOf(refusal) == scripts.Refused && g.refusal != refusal.Error() {
		g.refusal = refusal.Error()
		n.q.Log.Warn("multilock: a node cannot vote", "node", n.name, "error", g.refusal)
	}
	g.vote, g.why, g.until = vote, err, time.Now().Add(wait)
	g.looking = nil
	close(done)
}

// fit says why a node cannot vote whatever it remembers.
func (n *node) fit(said scripts.Standing) error {
	q := n.q
	major, _, _ := strings.Cut(said.Version, ".")
	version, err := strconv.Atoi(major)
	switch {
	case said.Run == "":
		return refused(errNoRunID)
	case err != nil || version < 7:
		return refused(errOld)
	case said.Policy != "noeviction" && !q.Evicting:
		return refused(fmt.Errorf("may evict locks: maxmemory-policy is %q, not noeviction", said.Policy))
	case said.Longest != q.Longest:
		return refused(fmt.Errorf("the longest lease of this deployment is %v, not %v; WithMaxLease says how to change it", said.Longest, q.Longest))
	case said.Nodes != len(q.nodes):
		return refused(fmt.Errorf("this deployment has %d nodes, not %d; New says how to change that", said.Nodes, len(q.nodes)))
	}
	return nil
}

// sameServer is the error of a node that is another of the nodes: its vote would be
// the other's once more.
type sameServer struct{ first, second *node }

func (e sameServer) Error() string {
	a, b := e.first, e.second
	if a.index > b.index {
		a, b = b, a
	}
	return fmt.Sprintf("clients %d (%s) and %d (%s) are of one server", a.index, a.name, b.index, b.name)
}

// Outcome is that of what waiting does not cure.
func (sameServer) Outcome() scripts.Outcome { return scripts.Refused }

// twin is another node of which run is known, by what of tells; nil if there is none.
// A server that tells no run id is taken for another than the others.
func (q *Quorum) twin(n *node, run string, of func(*node) string) *node {
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

// meet looks at all nodes before the first lock, and at those that nobody has used for a
// lease, so that their round has the time of any other. It waits for a node no longer
// than for any call.
func (q *Quorum) meet() {
	q.met.Do(func() { q.lookAt(q.nodes) })
	var stale []*node
	for _, n := range q.nodes {
		if n.stale() && !n.away() {
			stale = append(stale, n)
		}
	}
	q.lookAt(stale)
}

func (q *Quorum) lookAt(nodes []*node) {
	if len(nodes) == 0 {
		return
	}
	var all sync.WaitGroup
	bounded := q.after(q.NodeTimeout)
	for _, n := range nodes {
		all.Go(func() {
			_, _ = call(bounded, n, n.voting)
		})
	}
	all.Wait()
}
