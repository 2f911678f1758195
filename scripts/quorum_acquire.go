package scripts

import (
	"context"

	"github.com/redis/rueidis"
)

var quorumAcquireEach = scriptOf(asFunction("take", acquire) + asFunction("acquire", load("quorum_acquire.lua")) + load("acquire_each.lua").text)

// AcquireVoted does as [Node.AcquireEach] without fence numbers on a node of a quorum;
// if fenced, nodeReplies tell what a quorum makes one of. vote is of [Node.Look], or of
// [Node.Identify] for a node without restart guard. It never sends a script's text to a
// guarded node, which might have restarted: it has no vote instead.
func (n *Node) AcquireVoted(ctx context.Context, vote *Vote, fenced bool, asks []Ask, nodeReplies []NodeReply) error {
	keys, args, err := each(fenced, nil, asks)
	if err != nil {
		return err
	}
	if !vote.guarded() {
		s := acquireEach
		if fenced {
			s = quorumAcquireEach
		}
		return parseNodeReplies(nodeReplies, parseTold)(n.run(ctx, s, len(keys), append(keys, args...)...))
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
		void(nodeReplies)
		return nil
	}
	return parseNodeReplies(nodeReplies, parseTold)(m, explained(err))
}

func void(nodeReplies []NodeReply) {
	for i := range nodeReplies {
		nodeReplies[i] = NodeReply{NoVote: true}
	}
}
