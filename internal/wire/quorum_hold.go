package wire

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/watchdog"
)

// NodeReply is the answer of a quorum's node to one AcquireRequest.
type NodeReply struct {
	AcquireReply
	FenceSource        // if OK and with fencing
	NoVote      bool   // the node's vote is no longer valid: check the node again
	Holder      string // of the lock there, if it is another
	RunID       string // of the server, if that is known; the asker's to fill in
	Err         error  // Redis refused this one
}

// FenceSource is what a quorum makes a fence number from.
type FenceSource struct {
	Counter int64 // the last number reserved on the node; 0: none
	Clock   int64 // the server's, in µs
}

// AcquireVoted does what [Redis.Acquire] does on a node of a quorum, for each of asks by
// itself, and fills nodeReplies, one for each; if fenced, they contain what the quorum
// makes a fence number from. vote is of [Redis.CheckNode], or of [Redis.Identify] for a
// node without restart guard. It never sends a script's text to a guarded node, which
// might have restarted: it has no vote instead.
func (r *Redis) AcquireVoted(ctx context.Context, vote *Vote, fenced bool, asks []AcquireRequest, nodeReplies []NodeReply) error {
	in, err := forEach(asks, func(in input, a AcquireRequest) input {
		a.Fencing = Fencing{} // the quorum makes the numbers
		in = r.acquireInput(in, a)
		if fenced {
			in.keys = append(in.keys, counter(a.Key))
		}
		return in
	})
	if err != nil {
		return err
	}
	in.keys = append(in.keys, marker)
	s := quorumAcquire
	if vote.guarded() {
		s = vote.acquire
	}
	m, err := r.run(ctx, s, in)
	if noScript(err) {
		setNoVote(nodeReplies)
		return nil
	}
	return parseNodeReplies(m, ofOneSlot(err), nodeReplies)
}

// ofOneSlot explains the error of a node whose calls must have keys of one slot: the marker is
// in a different one than most locks.
func ofOneSlot(err error) error {
	if crossed(err) {
		return fmt.Errorf("the server is a node of a Redis Cluster, which can be no node of a quorum: %w", err)
	}
	return err
}

func setNoVote(nodeReplies []NodeReply) {
	for i := range nodeReplies {
		nodeReplies[i] = NodeReply{NoVote: true}
	}
}

func parseNodeReplies(m rueidis.RedisMessage, err error, nodeReplies []NodeReply) error {
	if values, bad := arrayOf(m, err, 1); bad == nil {
		if status, bad := integer(values[0], nil); bad == nil && status == -3 {
			setNoVote(nodeReplies)
			return nil
		}
	}
	return parseEach(m, err, nodeReplies, func(err error) NodeReply { return NodeReply{Err: err} }, parseNodeReply)
}

// parseNodeReply reads {left, holder}, {0, counter, clock} or what acquire replies.
func parseNodeReply(m rueidis.RedisMessage) (r NodeReply, err error) {
	if !m.IsArray() {
		r.AcquireReply, err = parseAcquired(m, nil)
		return r, err
	}
	f := fieldsOf(m, nil)
	if len(f.rest) == 3 {
		f.integer(0, 0)
		r.OK, r.FenceSource = true, FenceSource{f.integer(0, math.MaxInt64), f.integer(1, math.MaxInt64)}
		return result(f, r)
	}
	if r.AcquireReply, err = parseAcquired(f.next(), nil); err != nil || r.Remaining == 0 {
		f.refuse()
	}
	r.Holder = f.text()
	return result(f, r)
}

// RenewVoted does what [Redis.Renew] does on a node of a quorum. valid reports whether the
// node's marker is still that of vote, if that is of a node with a restart guard; otherwise no answer is
// Renewed. entries are set as by SetEntries, unless their count is 0.
func (r *Redis) RenewVoted(ctx context.Context, vote *Vote, lease time.Duration, keys, owners []string, entries []Entries, answers []watchdog.Answer) (valid bool, err error) {
	clear(answers)
	var any atomic.Bool // a vote may end between two calls
	err = apart(all(len(keys)), forbidden, func(of []int) error {
		args := make([]string, 0, 3*len(of)+2)
		for _, i := range of {
			args = append(args, keys[i])
		}
		args = append(args, marker, millis(lease))
		for _, i := range of {
			value := "0"
			if entries[i].Count > 0 {
				value = r.field(entries[i])
			}
			args = append(args, owners[i], value)
		}
		m, err := r.invoke(ctx, quorumRenew, len(of)+1, args...)
		values, err := arrayOf(m, err, len(of)+1)
		if err != nil {
			return err
		}
		present, err := values[0].ToString()
		if err != nil {
			return errReply
		}
		err = parseAnswers(values[1:], of, answers)
		if vote.guarded() && present != vote.marker {
			discount(of, answers)
		} else {
			any.Store(true)
		}
		return err
	})
	return any.Load(), err
}

// WriteFence raises the fence counter of a hold of owner to last; ours is false if
// the owner does not hold key there. It may be repeated.
func (r *Redis) WriteFence(ctx context.Context, key, owner string, last int64, expiry time.Duration) (ours bool, err error) {
	return parseBool(r.invoke(ctx, quorumFence, 2, key, counter(key), owner, decimal(last), millis(expiry)))
}
