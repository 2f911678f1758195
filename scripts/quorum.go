package scripts

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

var (
	quorumVote  = load("quorum_vote.lua")
	quorumLook  = load("quorum_look.lua")
	quorumRenew = load("quorum_renew.lua")
	quorumEnd   = load("quorum_end.lua")
	quorumFence = load("quorum_fence.lua")
)

// Deployment is what all clients of a quorum's nodes have to agree on.
type Deployment struct {
	Longest time.Duration // longest lease
	Nodes   int           // how many there are
}

// Standing is what a node of a quorum says of itself.
type Standing struct {
	Run        string        // id of the server's process
	Version    string        // of Redis
	Policy     string        // what it does when it is out of memory: maxmemory-policy
	Deployment               // of the marker; zero without one
	Left       time.Duration // until the node has a vote; 0: it has; negative: never by this marker
	Marked     bool          // the marker was written by this call
	Epoch      string        // of the marker; "" without one
	vote       Vote
}

// Vote is what a call needs that counts towards a quorum: it names one boot, one
// replication ID and one epoch of a node; without a restart guard only a boot, if that.
type Vote struct {
	run             string
	marker          string // "": without a restart guard
	acquire, fenced script
}

// Run is the id of the server's process; "" if it tells none.
func (v *Vote) Run() string { return v.run }

// guarded says whether the vote is of a node with a restart guard.
func (v *Vote) guarded() bool { return v != nil && v.marker != "" }

// Looking says what Look does about a node without a marker of its own.
type Looking string

const (
	// Tell changes nothing.
	Tell Looking = "tell"
	// Mark begins the node's quarantine: it has no vote for the longest lease.
	Mark Looking = "look"
	// Activate ends the quarantine of a node that has forgotten nothing since a call with
	// Mark told its epoch.
	Activate Looking = "activate"
)

// Look asks a node whether it has a vote, and if so gives it the scripts with
// which it votes. fresh is random and new in every call: the epoch of the marker, if
// one is written. of is the epoch that Activate is for. Two round trips, on one
// connection of its own, which cannot outlive the server's process: the scripts are
// those of the boot that was looked at. Getting that connection may take a dial,
// which ctx does not bound. It may be repeated.
func (n *Node) Look(ctx context.Context, how Looking, fresh string, d Deployment, of string) (Standing, *Vote, error) {
	conn, _ := n.client.Dedicate()
	defer conn.Close() // not given back: rueidis would send commands that a busy server refuses, and panic
	args := []string{marker, fresh, millis(d.Longest), decimal(int64(d.Nodes)), string(how)}
	if of != "" {
		args = append(args, of)
	}
	look := conn.B().Eval().Script(quorumLook.text).Numkeys(1).Arg(args...).Build()
	s, err := parseStanding(conn.Do(ctx, look).ToMessage())
	if err != nil || s.Left != 0 {
		return s, nil, err
	}
	for _, text := range []string{s.vote.acquire.text, s.vote.fenced.text} {
		if err := conn.Do(ctx, conn.B().ScriptLoad().Script(text).Build()).Error(); err != nil {
			return s, nil, err
		}
	}
	return s, &s.vote, nil
}

// Identify returns the vote of a node without restart guard. A server that tells no
// run id, or not to this user, has one as well.
func (n *Node) Identify(ctx context.Context) (*Vote, error) {
	run, err := n.RunID(ctx)
	if err != nil && OutcomeOf(err) != Refused {
		return nil, err
	}
	return &Vote{run: run}, nil
}

// Check says whether a vote is still good, and of a guarded one how its node stands.
// It changes nothing.
func (n *Node) Check(ctx context.Context, vote *Vote, d Deployment) (s Standing, good bool, err error) {
	if !vote.guarded() {
		now, err := n.Identify(ctx)
		return s, err == nil && now.run == vote.run, err
	}
	s, err = parseStanding(n.run(ctx, quorumLook, 1, marker, "0", millis(d.Longest), decimal(int64(d.Nodes)), string(Tell)))
	return s, err == nil && s.Left == 0 && s.vote.marker == vote.marker, err
}

func parseStanding(m rueidis.RedisMessage, err error) (Standing, error) {
	values, err := array(m, err)
	if err != nil || len(values) != 7 {
		return Standing{}, unexpected(err)
	}
	var text [5]string
	for i := range text {
		if text[i], err = values[i].ToString(); err != nil {
			return Standing{}, errReply
		}
	}
	left, err := integer(values[5], nil)
	written, err := integer(values[6], err)
	if err != nil || left < -1 || left > 2*maxLease.Milliseconds() {
		return Standing{}, errReply
	}
	s := Standing{Run: text[0], Version: text[1], Policy: text[2], Marked: written == 1, Left: time.Duration(left) * time.Millisecond}
	if s.Run == "" { // no marker names its boot
		s.Left = -1
	}
	if s.Run == "" || text[4] == "" {
		return s, nil
	}
	var run, replID, since string
	var longest int64
	if _, err := fmt.Sscan(text[4], &s.Epoch, &run, &replID, &since, &longest, &s.Nodes); err != nil {
		s.Epoch, s.Left = "", -1 // it is not one of ours
		return s, nil
	}
	s.Longest = time.Duration(longest) * time.Millisecond
	s.vote = newVote(text[4], text[3])
	s.vote.run = s.Run
	return s, nil
}

// newVote pins the scripts to a marker and a replication ID. Both are words that the node
// has said, and are checked to be no more than that.
func newVote(marker, replID string) Vote {
	head := fmt.Sprintf("local marker, replID = '%s', '%s'\n", word(marker), word(replID))
	return Vote{
		marker:  marker,
		acquire: scriptOf(head + quorumVote.text + acquireEach.text),
		fenced:  scriptOf(head + quorumVote.text + quorumAcquireEach.text),
	}
}

// word keeps of a text what may stand between quotes in a script.
func word(text string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == ':' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return -1
	}, text)
}

// RenewVoted does as [Node.Renew] on a node of a quorum. counts says whether its
// answers Renewed count: they do if the node's marker is still that of vote, if that
// is of a node with a restart guard. entries, if not 0, is how many entries
// the hold has.
func (n *Node) RenewVoted(ctx context.Context, vote *Vote, lease time.Duration, keys, owners []string, entries []int, answers []Answer) (counts bool, err error) {
	counts, err = n.renewVoted(ctx, vote, lease, keys, owners, entries, answers)
	if !forbidden(err) || len(keys) == 1 {
		return counts, err
	}
	var any atomic.Bool
	err = apart(len(keys), func(i, j int) error {
		counts, err := n.renewVoted(ctx, vote, lease, keys[i:j], owners[i:j], entries[i:j], answers[i:j])
		if counts {
			any.Store(true)
		}
		for k := i; !counts && k < j; k++ { // a vote may end between two parts
			if answers[k] == Renewed {
				answers[k] = Unanswered
			}
		}
		return err
	})
	return any.Load(), err
}

// renewVoted is one call of RenewVoted.
func (n *Node) renewVoted(ctx context.Context, vote *Vote, lease time.Duration, keys, owners []string, entries []int, answers []Answer) (counts bool, err error) {
	args := make([]string, 0, 3*len(keys)+2)
	args = append(append(args, keys...), marker, millis(lease))
	for i, owner := range owners {
		args = append(args, owner, decimal(int64(entries[i])))
	}
	values, err := array(n.run(ctx, quorumRenew, len(keys)+1, args...))
	if err != nil || len(values) != len(keys)+1 {
		return false, unexpected(err)
	}
	present, err := values[0].ToString()
	if err != nil {
		return false, errReply
	}
	return !vote.guarded() || present == vote.marker, parseAnswers(values[1:], answers)
}

// Ending is a hold that is to end on a node of a quorum.
type Ending struct {
	Key, Owner string
	Tell       bool  // tell those who wait for it
	Doubt      bool  // an acquire of the owner was not answered and may still arrive: leave a tombstone
	LastFence  int64 // if not 0, nor in doubt: the last fence number that was used; those reserved after it are given back
}

// EndEach ends each of holds by itself, whatever its count, and fills ends, one for
// each. It works on a Redis that is out of memory and may be repeated; a repeat cannot
// tell its own success from a loss.
func (n *Node) EndEach(ctx context.Context, holds []Ending, ends []End) error {
	args, others := make([]string, len(holds), 5*len(holds)), []string(nil)
	for i, h := range holds {
		if err := CheckKey(h.Key); err != nil {
			return err
		}
		if h.LastFence < 0 || h.LastFence > 9_999_999_999_999_999 {
			return refuse("last fence: %d is not from 0 to 9999999999999999", h.LastFence)
		}
		args[i] = h.Key
		if h.Doubt {
			others = append(others, tombstone(h.Key, h.Owner))
		} else if h.LastFence > 0 {
			others = append(others, counter(h.Key))
		}
	}
	args = append(args, others...)
	keys := len(args)
	for _, h := range holds {
		channel, more := "", ""
		if h.Tell {
			channel = Channel(h.Key)
		}
		if h.Doubt {
			more = "tombstone"
		} else if h.LastFence > 0 {
			more = decimal(h.LastFence)
		}
		args = append(args, h.Owner, channel, more)
	}
	values, err := array(n.run(ctx, quorumEnd, keys, args...))
	return parseEnds(values, err, ends)
}

// WriteFence raises the fence counter of a hold of owner to last; ours is false if
// the owner does not hold key there. It may be repeated.
func (n *Node) WriteFence(ctx context.Context, key, owner string, last int64, expiry time.Duration) (ours bool, err error) {
	return parseBool(n.run(ctx, quorumFence, 2, key, counter(key), owner, decimal(last), millis(expiry)))
}

// QuorumCommands returns the commands that a Redis user needs for the scripts of
// a quorum's nodes and for what is shared with one Redis, in lower case.
func QuorumCommands() []string {
	return append(Commands(), "info", "script|load")
}
