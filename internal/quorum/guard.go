package quorum

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
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
	if n.q.Unguarded {
		return nil, nil
	}
	g := &n.guard
	if vote := g.present(); vote != nil {
		return vote, nil
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

// revoke forgets a vote that the node does not know any more.
func (g *guard) revoke(v *scripts.Vote) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.vote == v {
		g.vote, g.why = nil, nil
	}
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
	said, vote, err := n.lookTwice(noDeadline{ctx}, scripts.Mark, "")
	g := &n.guard
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		err = n.fit(said)
	}
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
		if text := err.Error(); scripts.OutcomeOf(err) == scripts.Refused && g.refusal != text {
			g.refusal = text
			n.q.Log.Warn("multilock: a node cannot vote", "node", n.name, "error", text)
		}
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
	return n.same(said.Run)
}

// same is the error of a node that turned out to be another of the nodes; then no
// quorum is one.
func (n *node) same(run string) error {
	q := n.q
	q.mu.Lock()
	defer q.mu.Unlock()
	n.run = run
	for _, other := range q.nodes {
		if other != n && other.run == run && q.twice == nil {
			a, b := other, n
			if a.index > b.index {
				a, b = b, a
			}
			q.twice = refused(fmt.Errorf("multilock: clients %d (%s) and %d (%s) are of one server", a.index, a.name, b.index, b.name))
		}
	}
	return q.twice
}

// identify asks a node once who it is, where no look does. One that does not tell
// is taken for another than the others.
func (n *node) identify(ctx context.Context) error {
	if !n.q.Unguarded || n.known.Load() {
		return nil
	}
	run, err := n.script.RunID(ctx)
	if outcome := scripts.OutcomeOf(err); outcome == scripts.Unknown || outcome == scripts.Unavailable {
		return err
	}
	n.known.Store(true)
	if err == nil && run != "" {
		return n.same(run)
	}
	return nil
}

// meet looks at all nodes once, before the first lock: two clients of one server
// would make a quorum of fewer. It waits for a node no longer than for any call.
func (q *Quorum) meet() error {
	q.met.Do(func() {
		var all sync.WaitGroup
		bounded := q.after(q.NodeTimeout)
		for _, n := range q.nodes {
			all.Go(func() {
				_, _ = call(bounded, n, func(ctx context.Context) (struct{}, error) {
					if q.Unguarded {
						return struct{}{}, n.identify(ctx)
					}
					_, err := n.voting(ctx)
					return struct{}{}, err
				})
			})
		}
		all.Wait()
	})
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.twice
}
