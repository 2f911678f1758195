package quorum

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/scripts"
)

// asking is a hold that a node is asked for, and who is told what it said.
type asking struct {
	hold *hold
	told func(scripts.Ballot, error)
}

// ask asks a node for its part of a hold, which is noted there, and if fenced, for what
// a fence number is made of. It returns at once, mostly.
func (n *node) ask(h *hold, fenced bool, told func(scripts.Ballot, error)) {
	switch {
	case n.away():
		told(scripts.Ballot{}, n.absence())
	case !h.start(n):
		told(scripts.Ballot{}, errOver)
	default:
		n.asks.add(fenced, asking{h, told}, n.hurries(h))
	}
}

// acquire is ask for who waits for the answer.
func (n *node) acquire(h *hold, fenced bool) (b scripts.Ballot, err error) {
	came := make(chan struct{})
	n.ask(h, fenced, func(said scripts.Ballot, e error) {
		b, err = said, e
		close(came)
	})
	<-came
	return b, err
}

// askAll makes the call of acquires that share one.
func (n *node) askAll(fenced bool, asks []asking, cannot error) {
	ballots, err := []scripts.Ballot(nil), cannot
	if cannot == nil {
		holds := make([]*hold, len(asks))
		for i, a := range asks {
			holds[i] = a.hold
		}
		ballots, err = callFor(len(holds), n.q.bounded(holds[0].lease), n, func(ctx context.Context) ([]scripts.Ballot, error) {
			return n.ballots(ctx, fenced, holds)
		})
	}
	for i, a := range asks {
		a.hold.landed(n)
		if err != nil {
			a.told(scripts.Ballot{}, err)
		} else {
			a.told(ballots[i], ballots[i].Err)
		}
	}
}

// ballots asks a node for its parts of holds. Errors of one of them only are in its
// ballot.
func (n *node) ballots(ctx context.Context, fenced bool, holds []*hold) ([]scripts.Ballot, error) {
	ballots := make([]scripts.Ballot, len(holds))
	for range 2 { // a vote that has become void is asked for anew, once
		vote, err := n.voting(ctx)
		if err != nil {
			return nil, err
		}
		asks, of := make([]scripts.Ask, 0, len(holds)), make([]int, 0, len(holds))
		for i, h := range holds {
			if !h.send(n) {
				ballots[i] = scripts.Ballot{Err: errOver}
				continue
			}
			asks, of = append(asks, scripts.Ask{Key: h.key, Owner: h.owner, Lease: h.lease}), append(of, i)
		}
		if len(asks) == 0 {
			return nil, errOver // which is no answer of the node's
		}
		said := make([]scripts.Ballot, len(asks))
		err = n.script.AcquireVoted(ctx, vote, fenced, asks, said)
		if scripts.OutcomeOf(err) == scripts.Unknown {
			return nil, err
		}
		for at, i := range of {
			if scripts.OutcomeOf(said[at].Err) != scripts.Unknown {
				holds[i].answered(n, err == nil && said[at].OK)
			}
			ballots[i] = said[at]
			ballots[i].Run = vote.Run()
		}
		switch {
		case err != nil && len(asks) > 1 && scripts.OutcomeOf(err) == scripts.Refused && ctx.Err() == nil:
			var all sync.WaitGroup
			for _, i := range of { // by a fault of another's: its key is forbidden
				all.Go(func() { ballots[i] = n.ballotAlone(ctx, fenced, holds[i]) })
			}
			all.Wait()
			return ballots, ctx.Err()
		case err != nil:
			return nil, err
		case !said[0].NoVote:
			return ballots, nil
		}
		n.guard.revoke(vote)
	}
	return nil, errVoid
}

// ballotAlone is ballots for one hold.
func (n *node) ballotAlone(ctx context.Context, fenced bool, h *hold) scripts.Ballot {
	one, err := n.ballots(ctx, fenced, []*hold{h})
	if err != nil {
		return scripts.Ballot{Err: err}
	}
	return one[0]
}

// hurries says whether calls for a hold wait less long than those for others.
func (n *node) hurries(h *hold) bool { return h.lease/10 < n.q.NodeTimeout }
