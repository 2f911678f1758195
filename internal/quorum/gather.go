package quorum

import (
	"context"
	"runtime"
	"sync"

	"github.com/holdfast-go/holdfast/scripts"
)

// mostTogether is how many asks share a call at most.
const mostTogether = 50

// gatherer has asks to a node that come at the same time share a call: most of what
// a small script costs is the call. K is what they have to have in common. Safe for
// concurrent use.
type gatherer[K comparable, Q, A any] struct {
	call func(ctx context.Context, kind K, asks []Q, answers []A) error // immutable

	mu   sync.Mutex
	next *gathering[K, Q, A] // is about to be sent; guarded by mu
}

// gathering is the asks that go out in one call.
type gathering[K comparable, Q, A any] struct {
	kind K // immutable

	asks    []Q // guarded by the gatherer's mu until the call is made
	answers []A // by ask; these and the next two may be read when done is closed
	err     error
	undone  bool // Redis has done nothing: the call was not sent, or refused
	done    chan struct{}
}

// ask asks a node. The first of those who come at once asks for all, after letting
// the others come: where nobody else wants to run, at once. Who is hurried, as it
// waits less long than others, asks alone.
func (g *gatherer[K, Q, A]) ask(ctx context.Context, kind K, ask Q, hurried bool) (answer A, err error) {
	c, place := g.join(kind, ask, hurried)
	if place == 0 {
		runtime.Gosched()
		g.send(ctx, c)
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		return answer, errSilent
	}
	switch {
	case c.err == nil:
		return c.answers[place], nil
	case c.undone && len(c.asks) > 1: // by a fault of another's: its time was over, or its key is forbidden
		alone := make([]A, 1)
		err := g.call(ctx, kind, []Q{ask}, alone)
		return alone[0], err
	}
	return answer, c.err
}

// join puts an ask to others of its kind. Who is in the first place has to send
// them.
func (g *gatherer[K, Q, A]) join(kind K, ask Q, hurried bool) (c *gathering[K, Q, A], place int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	c = g.next
	if c == nil || hurried || c.kind != kind || len(c.asks) == mostTogether {
		c = &gathering[K, Q, A]{kind: kind, done: make(chan struct{})}
		if !hurried {
			g.next = c
		}
	}
	c.asks = append(c.asks, ask)
	return c, len(c.asks) - 1
}

// send makes the call. Nobody joins it any more.
func (g *gatherer[K, Q, A]) send(ctx context.Context, c *gathering[K, Q, A]) {
	g.mu.Lock()
	if g.next == c {
		g.next = nil
	}
	g.mu.Unlock()
	defer close(c.done)
	if ctx.Err() != nil { // it was paused
		c.err, c.undone = errSilent, true
		return
	}
	c.answers = make([]A, len(c.asks))
	c.err = g.call(ctx, c.kind, c.asks, c.answers)
	if c.err != nil && ctx.Err() != nil {
		c.err = errSilent // the time of who sends may be over a little before that of the others
	}
	c.undone = scripts.OutcomeOf(c.err) == scripts.Refused
}

// ballotKind is what acquires that share a call have in common.
type ballotKind struct {
	vote    *scripts.Vote
	fenced  bool
	fencing scripts.Fencing // if fenced
}

func ballotOf(vote *scripts.Vote, f *scripts.Fencing) ballotKind {
	if f == nil {
		return ballotKind{vote: vote}
	}
	return ballotKind{vote, true, *f}
}

func (n *node) askAll(ctx context.Context, k ballotKind, asks []scripts.Ask, ballots []scripts.Ballot) error {
	if !k.fenced {
		return n.script.AcquireVoted(ctx, k.vote, nil, asks, ballots)
	}
	return n.script.AcquireVoted(ctx, k.vote, &k.fencing, asks, ballots)
}

func (n *node) endAll(ctx context.Context, _ struct{}, holds []scripts.Hold, ends []scripts.End) error {
	return n.script.ReleaseEach(ctx, holds, ends)
}

// ballot asks a node for its part of a hold.
func (n *node) ballot(ctx context.Context, vote *scripts.Vote, h *hold, f *scripts.Fencing) (scripts.Ballot, error) {
	b, err := n.asks.ask(ctx, ballotOf(vote, f), scripts.Ask{Key: h.key, Owner: h.owner, Lease: h.lease}, n.hurries(h))
	if err != nil {
		return scripts.Ballot{}, err
	}
	return b, b.Err
}

// free ends a node's part of a hold, and gives no fence numbers back.
func (n *node) free(ctx context.Context, h *hold) (scripts.Released, error) {
	e, err := n.ends.ask(ctx, struct{}{}, scripts.Hold{Key: h.key, Owner: h.owner}, n.hurries(h))
	if err != nil {
		return scripts.Released{}, err
	}
	return e.Released, e.Err
}

// hurries says whether calls for a hold wait less long than those for others.
func (n *node) hurries(h *hold) bool { return h.lease/10 < n.q.NodeTimeout }
