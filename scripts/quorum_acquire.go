package scripts

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Ask is what a node of a quorum is asked for: its part of a hold.
type Ask struct {
	Key, Owner string
	Lease      time.Duration
}

// Ballot is a node's answer to an acquire that counts towards a quorum.
type Ballot struct {
	Acquired
	NoVote bool   // the vote is not good any more: look again
	Holder string // who holds the lock there, if it is another
	Err    error  // Redis refused this one
}

// AcquireVoted does as [Node.Acquire], or AcquireFenced if f is not nil, for each
// ask on a node of a quorum, and fills ballots, one for each. vote is of
// [Node.Look]; nil for a node without restart guard. It never sends a script's text
// to a guarded node, which might have restarted: it has no vote instead.
func (n *Node) AcquireVoted(ctx context.Context, vote *Vote, f *Fencing, asks []Ask, ballots []Ballot) error {
	keys, args := make([]string, 0, 3*len(asks)+1), make([]string, 0, 4*len(asks)+1)
	args = append(args, decimal(int64(len(asks))))
	for _, a := range asks {
		if err := checkHold(a.Key, a.Owner, a.Lease); err != nil {
			return err
		}
		keys, args = append(keys, a.Key, tombstone(a.Key, a.Owner)), append(args, a.Owner, millis(a.Lease))
		if f != nil {
			keys, args = append(keys, counter(a.Key)), append(args, decimal(f.Reserve), millis(f.Expiry))
		}
	}
	s := quorumAcquire
	if f != nil {
		s = quorumAcquireFenced
	}
	if vote == nil {
		return parseBallots(ballots)(n.run(ctx, s, len(keys), append(keys, args...)...))
	}
	if s = vote.acquire; f != nil {
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

func parseBallots(ballots []Ballot) func(rueidis.RedisMessage, error) error {
	return func(m rueidis.RedisMessage, err error) error {
		values, err := array(m, err)
		if err != nil {
			return err
		}
		if len(values) == 1 && values[0].IsInt64() {
			if said, err := values[0].AsInt64(); err == nil && said == -3 {
				void(ballots)
				return nil
			}
		}
		if len(values) != len(ballots) {
			return errReply
		}
		for i, v := range values {
			if ballots[i], err = parseBallot(v); err != nil {
				return err
			}
		}
		return nil
	}
}

func parseBallot(m rueidis.RedisMessage) (b Ballot, err error) {
	switch {
	case m.IsInt64():
		b.Acquired, err = parseAcquired(m, nil)
		return b, err
	case m.IsString():
		text, _ := m.ToString()
		return Ballot{Err: refusal(strings.TrimPrefix(text, "ERR "))}, nil
	}
	values, err := array(m, nil)
	if err != nil {
		return b, err
	}
	if len(values) == 2 {
		left, err := integer(values[0], nil)
		holder, e := values[1].ToString()
		if err != nil || e != nil || holder == "" {
			return b, errReply
		}
		b.Holder = holder
		b.Remaining, err = remaining(left)
		return b, err
	}
	b.Acquired, err = parseAcquiredFenced(m, nil)
	return b, err
}
