package wire

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

var (
	quorumCheck   = load("quorum_check")
	quorumAcquire = load("quorum_acquire")
	quorumRenew   = load("quorum_renew")
	quorumFence   = load("quorum_fence")
)

// Deployment is what all clients of a quorum's nodes must agree on.
type Deployment struct {
	MaxLease time.Duration // longest lease
	Nodes    int           // how many there are
}

// Standing is what a node of a quorum says about itself.
type Standing struct {
	RunID       string        // id of the server's process
	Version     string        // of Redis
	Policy      string        // maxmemory-policy: what it does when it is out of memory
	Deployment                // of the marker; zero without one
	Remaining   time.Duration // until the node has a vote; 0: it has; negative: never by this marker
	Incarnation string        // of the marker; "" without one
	Vote        *Vote         // nil: it has none
}

// Vote lets a call count towards a quorum: it names one boot, one replication ID and one
// incarnation of a node; without a restart guard only a boot, if the server shows it.
type Vote struct {
	runID   string
	marker  string // "": without a restart guard
	acquire script // if with one
}

// RunID is the id of the server's process; "" if unknown.
func (v *Vote) RunID() string { return v.runID }

// guarded reports whether the vote is of a node with a restart guard.
func (v *Vote) guarded() bool { return v != nil && v.marker != "" }

// CheckMode says what CheckNode does about a node without a marker of its own.
type CheckMode string

const (
	// Observe changes nothing.
	Observe CheckMode = "observe"
	// Mark begins the node's quarantine: it has no vote for the longest lease.
	Mark CheckMode = "mark"
	// Activate ends the quarantine of a node that has forgotten nothing since a call with
	// Mark returned its incarnation.
	Activate CheckMode = "activate"
)

// CheckNode asks a node whether it has a vote, and if so gives it the script with
// which it votes. fresh is random and new in every call: the incarnation of the marker, if
// one is written. of is the incarnation that Activate is for. It costs two round trips, on one
// connection of its own, which cannot outlive the server's process: the script is that of
// the boot that was checked. For a vote, a third one asks whether the other calls also go
// to that server; otherwise the client dials again. It may be repeated.
func (r *Redis) CheckNode(ctx context.Context, how CheckMode, fresh string, d Deployment, of string) (Standing, error) {
	pool, client := r.pool("")
	conn, err := pool.borrow(ctx, client)
	if err != nil {
		return Standing{}, err
	}
	defer conn.giveBack()
	defer conn.Close() // first: rueidis would send commands that a busy server refuses, and panic
	args := []string{marker, fresh, millis(d.MaxLease), decimal(int64(d.Nodes)), string(how)}
	if of != "" {
		args = append(args, of)
	}
	check := conn.B().Eval().Script(quorumCheck.text).Numkeys(1).Arg(args...).Build()
	m, err := conn.Do(ctx, check).ToMessage()
	s, err := parseStanding(m, r.callError(ctx, rightText, err))
	if err != nil || s.Vote == nil {
		return s, err
	}
	if err := conn.Do(ctx, conn.B().ScriptLoad().Script(s.Vote.acquire.text).Build()).Error(); err != nil {
		s.Vote = nil
		return s, r.callError(ctx, 0, err)
	}
	if run, err := r.runID(ctx); err == nil && run != s.RunID {
		r.redial(ctx)
	}
	return s, nil
}

// Identify returns the vote of a node without restart guard. A server that shows no run id, or not
// to this user, also has one.
func (r *Redis) Identify(ctx context.Context) (*Vote, error) {
	run, err := r.runID(ctx)
	if err != nil && !OutcomeOf(err).Final() {
		return nil, err
	}
	return &Vote{runID: run}, nil
}

// CheckVote reports whether a vote is still good, and of a guarded one how its node
// stands. It changes nothing.
func (r *Redis) CheckVote(ctx context.Context, vote *Vote, d Deployment) (s Standing, good bool, err error) {
	if !vote.guarded() {
		now, err := r.Identify(ctx)
		return s, err == nil && now.runID == vote.runID, err
	}
	s, err = parseStanding(r.invoke(ctx, quorumCheck, 1, marker, "0", millis(d.MaxLease), decimal(int64(d.Nodes)), string(Observe)))
	return s, err == nil && s.Vote != nil && s.Vote.marker == vote.marker, err
}

func parseStanding(m rueidis.RedisMessage, err error) (Standing, error) {
	f := fieldsOf(m, err)
	s := Standing{RunID: f.text(), Version: f.text(), Policy: f.text()}
	replID, marker := f.text(), f.text()
	s.Remaining = time.Duration(f.integer(-1, 2*maxLease.Milliseconds())) * time.Millisecond
	if s, err = result(f, s); err != nil {
		return s, err
	}
	if s.RunID == "" { // no marker names its boot
		s.Remaining = -1
	}
	if s.RunID == "" || marker == "" {
		return s, nil
	}
	var run, marked, since string
	var longest int64
	if _, err := fmt.Sscan(marker, &s.Incarnation, &run, &marked, &since, &longest, &s.Nodes); err != nil {
		s.Incarnation, s.Remaining = "", -1 // it is not one of ours
		return s, nil
	}
	s.MaxLease = time.Duration(longest) * time.Millisecond
	if s.Remaining == 0 {
		s.Vote = newVote(marker, replID)
		s.Vote.runID = s.RunID
	}
	return s, nil
}

// blankVote is the line of quorum/acquire.lua that newVote replaces by the marker and replication ID of a vote.
const blankVote = "local marker, replID = '', ''\n"

// newVote returns a vote, whose script is quorum_acquire with its marker and replication ID. Both are words
// that the node has said, and are checked to be no more than that.
func newVote(marker, replID string) *Vote {
	filled := fmt.Sprintf("local marker, replID = '%s', '%s'\n", word(marker), word(replID))
	s := scriptOf(strings.Replace(quorumAcquire.text, blankVote, filled, 1))
	s.bound = true
	return &Vote{marker: marker, acquire: s}
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
