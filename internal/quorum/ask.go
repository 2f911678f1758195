package quorum

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/scripts"
)

// asking is a hold that a node is asked for, and who is told what it said.
type asking struct {
	hold *hold
	told func(scripts.NodeReply, error)
}

// ask asks a node for its part of a hold, which is noted there, and if fenced, for what
// a fence number is made of. It returns at once, mostly.
func (n *node) ask(h *hold, fenced bool, told func(scripts.NodeReply, error)) {
	switch {
	case n.away():
		told(scripts.NodeReply{}, n.absence())
	case !h.start(n):
		told(scripts.NodeReply{}, errOver)
	default:
		n.asks.add(fenced, asking{h, told}, n.hurries(h))
	}
}

// acquire is ask for who waits for the answer.
func (n *node) acquire(h *hold, fenced bool) (b scripts.NodeReply, err error) {
	came := make(chan struct{})
	n.ask(h, fenced, func(said scripts.NodeReply, e error) {
		b, err = said, e
		close(came)
	})
	<-came
	return b, err
}

// askAll makes the call of acquires that share one.
func (n *node) askAll(fenced bool, asks []asking, cannot error) {
	nodeReplies, err := []scripts.NodeReply(nil), cannot
	if cannot == nil {
		holds := make([]*hold, len(asks))
		for i, a := range asks {
			holds[i] = a.hold
		}
		nodeReplies, err = callFor(len(holds), n.q.bounded(holds[0].lease), n, func(ctx context.Context) ([]scripts.NodeReply, error) {
			return n.nodeReplies(ctx, fenced, holds)
		})
	}
	for i, a := range asks {
		a.hold.landed(n)
		if err != nil {
			a.told(scripts.NodeReply{}, err)
		} else {
			a.told(nodeReplies[i], nodeReplies[i].Err)
		}
	}
}

// nodeReplies asks a node for its parts of holds. Errors of one of them only are in its
// nodeReply.
func (n *node) nodeReplies(ctx context.Context, fenced bool, holds []*hold) ([]scripts.NodeReply, error) {
	nodeReplies := make([]scripts.NodeReply, len(holds))
	for range 2 { // a vote that has become void is asked for anew, once
		vote, err := n.voting(ctx)
		if err != nil {
			return nil, err
		}
		asks, of := make([]scripts.Ask, 0, len(holds)), make([]int, 0, len(holds))
		for i, h := range holds {
			if !h.send(n) {
				nodeReplies[i] = scripts.NodeReply{Err: errOver}
				continue
			}
			asks, of = append(asks, scripts.Ask{Key: h.key, Owner: h.owner, Lease: h.lease}), append(of, i)
		}
		if len(asks) == 0 {
			return nil, errOver // which is no answer of the node's
		}
		said := make([]scripts.NodeReply, len(asks))
		err = n.script.AcquireVoted(ctx, vote, fenced, asks, said)
		if scripts.OutcomeOf(err) == scripts.Unknown {
			return nil, err
		}
		for at, i := range of {
			if scripts.OutcomeOf(said[at].Err) != scripts.Unknown {
				holds[i].answered(n, err == nil && said[at].OK)
			}
			nodeReplies[i] = said[at]
			nodeReplies[i].Run = vote.Run()
		}
		switch {
		case err != nil && len(asks) > 1 && scripts.OutcomeOf(err) == scripts.Refused && ctx.Err() == nil:
			var all sync.WaitGroup
			for _, i := range of { // by a fault of another's: its key is forbidden
				all.Go(func() { nodeReplies[i] = n.nodeReplyAlone(ctx, fenced, holds[i]) })
			}
			all.Wait()
			return nodeReplies, ctx.Err()
		case err != nil:
			return nil, err
		case !said[0].NoVote:
			return nodeReplies, nil
		}
		n.guard.revoke(vote)
	}
	return nil, errVoid
}

// nodeReplyAlone is nodeReplies for one hold.
func (n *node) nodeReplyAlone(ctx context.Context, fenced bool, h *hold) scripts.NodeReply {
	one, err := n.nodeReplies(ctx, fenced, []*hold{h})
	if err != nil {
		return scripts.NodeReply{Err: err}
	}
	return one[0]
}

// hurries says whether calls for a hold wait less long than those for others.
func (n *node) hurries(h *hold) bool { return h.lease/10 < n.q.NodeTimeout }
