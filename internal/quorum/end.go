package quorum

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Every hold ends in the same way, whether it is released, lost, cleaned up or of a failed
// round: markOver marks it, and end ends it on each node that may know of it. A node
// that does not answer is left to its repairer.

// Release ends a hold on all nodes that were ever asked for it, whatever they answered. It
// waits until a quorum has answered. The other nodes end the hold in the background, where
// attempts go on for as long as the hold could last. With Doubt, the round's caller has left, or its
// result came too late: a failed round has already given itself up.
func (q *Quorum) Release(ctx context.Context, own wire.ReleaseRequest) (wire.ReleaseReply, error) {
	h := q.holdOf(own.Owner)
	if h == nil {
		return wire.ReleaseReply{}, nil
	}
	targets := q.markOver(h, true, own.LastFence)
	came := make(chan answer[struct{}], len(targets))
	done := func(n *node, _ endReply, err error) {
		if err != nil {
			n.endLater(h)
		}
		came <- answer[struct{}]{n: n, err: err}
	}
	errs, refused := make([]error, len(q.nodes)), 0
	for _, n := range targets {
		errs[n.index] = calls.ErrNoAnswer
		n.end(h, done)
	}
	for range targets {
		a, ok := next(ctx, came)
		if !ok {
			break
		}
		errs[a.n.index] = a.err
		if wire.OutcomeOf(a.err) == wire.Refused {
			refused++
		}
		if reply, enough, _ := h.outcome(q); enough {
			q.holds.Delete(own.Owner)
			return reply, nil
		}
	}
	switch reply, _, all := h.outcome(q); { // a repairer may have got the last answer
	case refused >= q.lostAt():
		return wire.ReleaseReply{}, q.newError(q.quorum, errs) // to be tried again, until the engine calls Abandoned
	case !all:
		return wire.ReleaseReply{}, ownError{q.newError(q.quorum, errs), wire.Unknown}
	default:
		q.holds.Delete(own.Owner)
		return reply, nil // if not ours, the quorum was lost
	}
}

// Abandoned releases, in the background, a hold that is over.
func (q *Quorum) Abandoned(owner string) {
	if h := q.holdOf(owner); h != nil {
		q.giveUp(h, true)
	}
}

// Drain lets the last releases arrive: one attempt on each node, and what fails is repeated
// until ctx ends, or can no longer succeed. It reports to remain each key that may be left on a
// node.
func (q *Quorum) Drain(ctx context.Context, remain func(key string, why error)) {
	q.short.Shut()
	for _, n := range q.nodes {
		for {
			ends, hopeless := n.unended()
			if ctx.Err() != nil || hopeless {
				for key, why := range ends {
					remain(key, fmt.Errorf("%s: %w", n.name, why))
				}
				break
			}
			select {
			case <-n.progress:
			case <-ctx.Done():
			}
		}
	}
}

// giveUp ends a hold in the background. It does not wait for the nodes, as many rounds fail
// while nodes hang.
func (q *Quorum) giveUp(h *hold, notify bool) {
	q.holds.Delete(h.Owner)
	for _, n := range q.markOver(h, notify, 0) {
		n.end(h, func(n *node, _ endReply, err error) {
			if err != nil {
				n.endLater(h)
			}
		})
	}
}

// outcome combines the ends of a hold so far: whether it was ours, whether enough nodes have
// answered to know that, and whether all have.
func (h *hold) outcome(q *Quorum) (reply wire.ReleaseReply, enough, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.released >= q.quorum {
		reply = wire.ReleaseReply{Ours: true, Listeners: h.listeners}
	}
	all = !slices.ContainsFunc(h.parts, func(p part) bool { return p != part{} })
	return reply, reply.Ours || h.notOurs >= q.lostAt(), all
}

// end makes one attempt to end, on a node, a hold that is over, after the acquires of it that are
// flying there. It returns immediately. Close waits for the attempt, unless Close came before it.
func (n *node) end(h *hold, done func(*node, endReply, error)) {
	end := ending{h, done}
	if n.q.short.TryBegin() {
		end.done = func(n *node, reply endReply, err error) {
			defer n.q.short.Done()
			done(n, reply, err)
		}
	}
	if !h.await(n, end) {
		n.endNow(end)
	}
}

func (n *node) endNow(end ending) {
	if _, need := end.hold.toEnd(n); !need {
		end.done(n, endReply{}, nil)
	} else if n.away() {
		end.done(n, endReply{}, errAway)
	} else {
		n.ends.add(struct{}{}, end, n.q.hurries(end.hold.Lease))
	}
}

func (n *node) release(ctx context.Context, _ struct{}, items []ending) ([]endReply, error) {
	asks, replies := make([]wire.ReleaseRequest, len(items)), make([]endReply, len(items))
	for i, end := range items {
		asks[i], _ = end.hold.toEnd(n)
	}
	return replies, n.redis.ReleaseEach(ctx, asks, replies)
}

// noteEnd notes the answer to a call that ends a hold.
func (n *node) noteEnd(h *hold, reply endReply, err error) error {
	if err == nil {
		err = reply.Err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &h.parts[n.index]
	switch {
	case *p == part{}: // another call has ended it
	case err != nil:
		p.state = min(p.state, present)
		p.tried = p.tried || wire.OutcomeOf(err).MayHaveRun()
	case reply.Value.Ours || p.tried:
		h.released++
		h.listeners = max(h.listeners, reply.Value.Listeners)
		*p = part{}
	default:
		h.notOurs++
		*p = part{}
	}
	return err
}
