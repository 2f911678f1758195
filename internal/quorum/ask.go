package quorum

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// ask asks a node for its part of a hold and, if fenced, for its counter and clock. It
// returns immediately; the answer goes to done.
func (n *node) ask(h *hold, fenced bool, done func(*node, wire.NodeReply, error)) {
	switch {
	case n.away():
		done(n, wire.NodeReply{}, n.absence())
	case !h.markFlying(n):
		done(n, wire.NodeReply{}, errOver)
	default:
		n.asks.add(fenced, item[wire.NodeReply]{h, done}, n.q.hurries(h.Lease))
	}
}

// acquire sends a batch of asks. The error of a single ask is in its reply.
func (n *node) acquire(ctx context.Context, fenced bool, items []item[wire.NodeReply]) ([]wire.NodeReply, error) {
	replies := make([]wire.NodeReply, len(items))
	for range 2 { // once more if the vote has become void
		vote, err := n.voting(ctx)
		if err != nil {
			return nil, err
		}
		asks, of := make([]wire.AcquireRequest, 0, len(items)), make([]int, 0, len(items))
		for i, it := range items {
			h := it.hold
			if !h.markSent(n) {
				replies[i] = wire.NodeReply{Err: errOver}
				continue
			}
			asks, of = append(asks, h.AcquireRequest), append(of, i)
		}
		if len(asks) == 0 {
			return nil, errOver // not an answer of the node
		}
		given := make([]wire.NodeReply, len(asks))
		n.extends()
		err = n.redis.AcquireVoted(ctx, vote, fenced, asks, given)
		if wire.OutcomeOf(err).MayHaveRun() {
			return nil, err
		}
		for at, i := range of {
			if !wire.OutcomeOf(given[at].Err).MayHaveRun() {
				items[i].hold.replied(n, err == nil && given[at].OK)
			}
			replies[i] = given[at]
			replies[i].RunID = vote.RunID()
		}
		if err != nil || !given[0].NoVote {
			return replies, err
		}
		n.guard.dropVote(vote)
	}
	return nil, errVoid
}

// noteAsk notes the answer to an ask, or the end of the wait for it.
func (n *node) noteAsk(h *hold, reply wire.NodeReply, err error) error {
	for _, end := range h.landed(n) {
		n.endNow(end)
	}
	if err != nil {
		return err
	}
	return reply.Err
}
