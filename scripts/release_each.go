package scripts

import (
	"context"
	"strings"

	"github.com/redis/rueidis"
)

var releaseEach = load("release_each.lua")

// Hold is a lock and who holds it.
type Hold struct{ Key, Owner string }

// End is the answer to the release of one hold among several.
type End struct {
	Released
	Err error // Redis refused this one
}

// ReleaseEach does as [Node.Release] for each of holds, by itself and without fence
// numbers to give back, and fills ends, one for each.
func (n *Node) ReleaseEach(ctx context.Context, holds []Hold, ends []End) error {
	if len(holds) == 1 { // what Redis knows already
		said, err := n.Release(ctx, holds[0].Key, holds[0].Owner, 0)
		ends[0] = End{said, err}
		return err
	}
	return n.endEach(ctx, holds, nil, ends)
}

// CleanUpEach does as [Node.CleanUp] for each of holds, by itself, and fills ends, one
// for each.
func (n *Node) CleanUpEach(ctx context.Context, holds []Hold, ends []End) error {
	stones := make([]string, len(holds))
	for i, h := range holds {
		stones[i] = tombstone(h.Key, h.Owner)
	}
	return n.endEach(ctx, holds, stones, ends)
}

func (n *Node) endEach(ctx context.Context, holds []Hold, stones []string, ends []End) error {
	args := make([]string, len(holds), 3*len(holds)+len(stones))
	for i, h := range holds {
		if err := CheckKey(h.Key); err != nil {
			return err
		}
		args[i] = h.Key
	}
	args = append(args, stones...)
	keys := len(args)
	for _, h := range holds {
		args = append(args, h.Owner, Channel(h.Key))
	}
	values, err := array(n.run(ctx, releaseEach, keys, args...))
	return parseEnds(values, err, ends)
}

// parseEnds fills ends with the answers of a reply.
func parseEnds(values []rueidis.RedisMessage, err error, ends []End) error {
	if err != nil || len(values) != len(ends) {
		return unexpected(err)
	}
	for i, v := range values {
		if v.IsString() {
			text, _ := v.ToString()
			ends[i] = End{Err: refusal(strings.TrimPrefix(text, "ERR "))}
		} else if ends[i].Released, err = parseReleased(v, nil); err != nil {
			return err
		}
	}
	return nil
}
