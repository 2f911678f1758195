package scripts

import (
	"context"

	"github.com/redis/rueidis"
)

// AcquireVoted does as [Node.AcquireEach] on a node of a quorum. vote is of
// [Node.Look], or of [Node.Identify] for a node without restart guard. It never sends a script's text
// to a guarded node, which might have restarted: it has no vote instead.
func (n *Node) AcquireVoted(ctx context.Context, vote *Vote, f *Fencing, asks []Ask, ballots []Ballot) error {
	if !vote.guarded() {
		return n.AcquireEach(ctx, f, asks, ballots)
	}
	keys, args, err := each(f, asks)
	if err != nil {
		return err
	}
	s := vote.acquire
	if f != nil {
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
	return parseBallots(ballots)(m, err)
}

func void(ballots []Ballot) {
	for i := range ballots {
		ballots[i] = Ballot{NoVote: true}
	}
}
