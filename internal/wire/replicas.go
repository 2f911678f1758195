package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redact"
)

// onReplicas is write where replicas are asked for. shortfall is why the write does not count, if Redis has written
// something.
//
// WAIT blocks its connection, and covers only what was written on it. So a write with it has a
// connection of its own for the time of the call (see sendAndWait): a new one for each attempt, as on a
// Redis Cluster such a connection stays with one node and follows neither MOVED nor ASK. The client
// is made to learn from MOVED; where ASK sends a call is for the next attempt alone.
// https://redis.io/docs/latest/commands/wait/
func (r *Redis) onReplicas(ctx context.Context, s script, keys int, args []string) (reply rueidis.RedisMessage, shortfall, err error) {
	if err := ctx.Err(); err != nil {
		return reply, nil, notSent{err}
	}
	next := "" // the node that ASK has named
	reply, err = r.invokeBy(ctx, func(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
		replies, err := r.sendAndWait(ctx, s.renews, args[0], next, cmd)
		if err != nil {
			if r.Cluster != nil && ctx.Err() == nil { // perhaps the node has died
				_ = r.Cluster.Refresh(ctx)
			}
			return rueidis.NewErrorResult(err)
		}
		answer, waited := replies[len(replies)-2], replies[len(replies)-1]
		shortfall = nil
		switch have, err := waited.ToInt64(); {
		case Replied(err) && OutcomeOf(err).Final(): // the next write would fare no better
			shortfall = Judge(fmt.Errorf("WithReplicas: WAIT is refused: %w", redact.Error(err)), Doubtful)
		case err != nil:
			shortfall = notReplicated("whether replicas have the write: %v", err)
		case have < int64(r.Replicas):
			shortfall = notReplicated("%d of %d replicas confirmed the write in time", have, r.Replicas)
		}
		if err := answer.Error(); err != nil && r.Cluster != nil && !noScript(err) { // otherwise the same node gets the text
			next = r.redirected(ctx, args[0], err)
		}
		return answer
	}, s, keys, args)
	return reply, shortfall, err
}

// redirected returns the node that ASK has named, otherwise "". The client learns that node, and where
// the key is if another node has it. If the node did not answer, as one that has died, or belongs to no
// majority, any node is asked which ones are masters.
func (r *Redis) redirected(ctx context.Context, key string, err error) (next string) {
	re, answered := err.(*rueidis.RedisError)
	if !answered || re.IsClusterDown() {
		if ctx.Err() == nil && !errors.Is(err, rueidis.ErrClosing) {
			_ = r.Cluster.Refresh(ctx)
		}
		return ""
	}
	next, ask := re.IsAsk()
	if _, moved := re.IsMoved(); moved || ask && r.client.Nodes()[next] == nil {
		r.client.Do(ctx, r.client.B().Exists().Key(key).Build()) // from whose answer it learns where the slot is
		_ = r.Cluster.Refresh(ctx)
	}
	return next
}

// notReplicated is why a write does not count: too few replicas confirmed it, or could not be asked.
func notReplicated(format string, args ...any) error {
	return Judge(Matching(fmt.Errorf(format, args...), holdfast.ErrNotReplicated), Unknown)
}
