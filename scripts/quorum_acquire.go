package scripts

import (
	"context"

	"github.com/redis/rueidis"
)

var quorumAcquireEach = scriptOf(asFunction("take", acquire) + asFunction("acquire", load("quorum_acquire.lua")) + load("acquire_each.lua").text)

// AcquireVoted does as [Node.AcquireEach] without fence numbers on a node of a quorum;
// if fenced, ballots tell what a quorum makes one of. vote is of [Node.Look], or of
// [Node.Identify] for a node without restart guard. It never sends a script's text to a
// guarded node, which might have restarted: it has no vote instead.
func (n *Node) AcquireVoted(ctx context.Context, vote *Vote, fenced bool, asks []Ask, ballots []Ballot) error {
	keys, args, err := each(fenced, nil, asks)
	if err != nil {
		return err
	}
	if !vote.guarded() {
		s := acquireEach
		if fenced {
			s = quorumAcquireEach
		}
		return parseBallots(ballots, parseTold)(n.run(ctx, s, len(keys), append(keys, args...)...))
	}
	s := vote.acquire
	if fenced {
		s = vote.fenced
	}
	if err := ctx.Err(); err != nil {
		return notSent{err}
	}
	keys = append(keys, marker)
	cmd := n.client.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(keys))).Arg(keys...).Arg(args...).Build()
	m, err := n.client.Do(ctx, cmd).ToMessage()
	if re, ok := err.(*rueidis.RedisError); ok && re.IsNoScript() {
		void(ballots)
		return nil
	}
	return parseBallots(ballots, parseTold)(m, explained(err))
}

func void(ballots []Ballot) {
	for i := range ballots {
		ballots[i] = Ballot{NoVote: true}
	}
}
