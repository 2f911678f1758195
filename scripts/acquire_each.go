package scripts

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

var (
	acquireEach       = scriptOf(asFunction("acquire", acquire) + load("acquire_each.lua").text)
	acquireEachFenced = scriptOf(asFunction("acquire", acquireFenced) + load("acquire_each.lua").text)
)

// Ask is one hold that is asked for among several.
type Ask struct {
	Key, Owner string
	Lease      time.Duration
}

// NodeReply is the answer to it; on a node of a quorum it counts towards that.
type NodeReply struct {
	Acquired
	NoVote bool   // the node's vote is not good any more: look again
	Holder string // who holds the lock there, if it is another
	Run    string // of the server, if that is known; the asker's to fill in
	Told          // if OK, of a quorum's node with fencing
	Err    error  // Redis refused this one
}

// Told is what a quorum makes a fence number of.
type Told struct {
	Counter int64 // the last number reserved there; 0: none
	Clock   int64 // the server's, in µs
}

// AcquireEach does as [Node.Acquire], or AcquireFenced if f is not nil, for each of
// asks by itself, and fills nodeReplies, one for each.
func (n *Node) AcquireEach(ctx context.Context, f *Fencing, asks []Ask, nodeReplies []NodeReply) error {
	keys, args, err := each(f != nil, f, asks)
	if err != nil {
		return err
	}
	s := acquireEach
	if f != nil {
		s = acquireEachFenced
	}
	return parseNodeReplies(nodeReplies, parseFenced)(n.run(ctx, s, len(keys), append(keys, args...)...))
}

// each is the KEYS and the ARGV of acquire_each: with the fence counters, and with what
// is to be reserved if that is not nil.
func each(fenced bool, f *Fencing, asks []Ask) (keys, args []string, err error) {
	keys, args = make([]string, 0, 7*len(asks)+2), make([]string, 0, 4*len(asks)+1)
	args = append(args, decimal(int64(len(asks))))
	for _, a := range asks {
		if err := checkHold(a.Key, a.Owner, a.Lease); err != nil {
			return nil, nil, err
		}
		keys, args = append(keys, a.Key, tombstone(a.Key, a.Owner)), append(args, a.Owner, millis(a.Lease))
		if fenced {
			keys = append(keys, counter(a.Key))
		}
		if f != nil {
			args = append(args, decimal(f.Reserve), millis(f.Expiry))
		}
	}
	return keys, args, nil
}

// parseNodeReplies fills nodeReplies; parse is for the answer of three parts.
func parseNodeReplies(nodeReplies []NodeReply, parse func(rueidis.RedisMessage) (NodeReply, error)) func(rueidis.RedisMessage, error) error {
	return func(m rueidis.RedisMessage, err error) error {
		values, err := array(m, err)
		if err != nil {
			return err
		}
		if len(values) == 1 && values[0].IsInt64() {
			if said, err := values[0].AsInt64(); err == nil && said == -3 {
				void(nodeReplies)
				return nil
			}
		}
		if len(values) != len(nodeReplies) {
			return errReply
		}
		for i, v := range values {
			if nodeReplies[i], err = parseNodeReply(v, parse); err != nil {
				return err
			}
		}
		return nil
	}
}

func parseNodeReply(m rueidis.RedisMessage, parse func(rueidis.RedisMessage) (NodeReply, error)) (b NodeReply, err error) {
	switch {
	case m.IsInt64():
		b.Acquired, err = parseAcquired(m, nil)
		return b, err
	case m.IsString():
		text, _ := m.ToString()
		return NodeReply{Err: refusal(strings.TrimPrefix(text, "ERR "))}, nil
	}
	values, err := array(m, nil)
	if err != nil {
		return b, err
	}
	if len(values) == 2 {
		left, err := integer(values[0], nil)
		holder, e := values[1].ToString()
		if err != nil || e != nil {
			return b, errReply
		}
		b.Holder = holder
		b.Remaining, err = remaining(left)
		return b, err
	}
	return parse(m)
}

func parseFenced(m rueidis.RedisMessage) (b NodeReply, err error) {
	b.Acquired, err = parseAcquiredFenced(m, nil)
	return b, err
}

func parseTold(m rueidis.RedisMessage) (NodeReply, error) {
	values, err := array(m, nil)
	if err != nil || len(values) != 3 {
		return NodeReply{}, errReply
	}
	status, err := integer(values[0], nil)
	counter, err := integer(values[1], err)
	clock, err := integer(values[2], err)
	if err != nil || status != 0 || counter < 0 || clock < 1 {
		return NodeReply{}, errReply
	}
	return NodeReply{Acquired: Acquired{OK: true}, Told: Told{counter, clock}}, nil
}

// asFunction is a script as a function of that name, for others to call.
func asFunction(name string, s script) string {
	return "local function " + name + "(KEYS, ARGV)\n" + s.text + "end\n"
}
