package wire

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A fresh node is marked, and an activation that names the mark gives it a vote. Repeats change nothing.
func TestCheckNode(t *testing.T) {
	s, n := start(t)
	require.Empty(t, unvoted(t, n, Activate, newIncarnation()).Incarnation)
	require.Empty(t, state(t, s), "no marker, nothing to activate")
	reply := unvoted(t, n, Mark, "")
	require.NotEmpty(t, reply.Incarnation)
	require.Equal(t, ofThree(longest), reply.Deployment)
	require.Equal(t, "noeviction", reply.Policy)
	require.Regexp(t, `^\d+\.\d+\.\d+$`, reply.Version)
	require.Equal(t, must(n.runID(bounded(t)))(t), reply.RunID)
	// The longest lease and a hundredth for each of two clocks, and 2 ms.
	require.InDelta(t, longest.Milliseconds()*102/100+2, reply.Remaining.Milliseconds(), slackMillis)

	before := state(t, s)
	for _, how := range []CheckMode{Mark, Observe, Activate} {
		for _, of := range []string{"", "none", newIncarnation(), reply.Incarnation[1:], reply.Incarnation + "0"} {
			again := unvoted(t, n, how, of)
			require.Equal(t, reply.Incarnation, again.Incarnation)
			require.Positive(t, again.Remaining)
		}
	}
	require.Equal(t, before, state(t, s))

	active, vote, has := checkedFor(t, n, Activate, longest, reply.Incarnation)
	require.True(t, has)
	require.Zero(t, active.Remaining)
	require.NotEqual(t, reply.Incarnation, active.Incarnation)
	activated := markerOf(t, s)
	require.Regexp(t, `^[0-9a-f]+ [0-9a-f]{40} [0-9a-f]{40} 0 3600000 3$`, activated)
	lasts(t, s, "holdfast_node", -1)
	_, again, _ := checkedFor(t, n, Activate, longest, reply.Incarnation) // the reply was lost
	require.Equal(t, vote, again)
	require.Equal(t, activated, markerOf(t, s))
}

func TestQuarantineEnds(t *testing.T) {
	s, n := start(t)
	const short = 200 * time.Millisecond
	began := time.Now()
	var vote *Vote
	until(t, func() (has bool) {
		_, vote, has = checkedFor(t, n, Mark, short, "")
		return has
	})
	require.GreaterOrEqual(t, time.Since(began), short*102/100+time.Millisecond)
	require.True(t, must(acquireVoted(n, bounded(t), vote, "k", ownA, false))(t).OK)

	// The margin, where it can be seen.
	s.Do(t, "DEL", marker)
	unvoted(t, n, Mark, "")
	forge(t, s, wordSince, decimal(serverMicros(t, s)/1000-longest.Milliseconds()))
	require.InDelta(t, longest*2/100, unvoted(t, n, Mark, "").Remaining, float64(slack))
}

// A marker that is not this boot's, this replication ID's or the past's is no vote, and is
// replaced by a quarantine; telling and activating leave it.
func TestGuard_MarkerChecks(t *testing.T) {
	s, n := start(t)
	other := strings.Repeat("a", 40)
	forged := func(word int, to string) func() { return func() { forge(t, s, word, to) } }
	text := func(text string) func() { return func() { s.Do(t, "SET", marker, text) } }
	for name, change := range map[string]func(){
		"other boot":               forged(wordRun, other),
		"other replID":             forged(wordReplID, other),
		"clock stepped back":       func() { forge(t, s, wordSince, decimal(serverMicros(t, s)/1000+60_000)) },
		"no boot":                  forged(wordRun, "-"),
		"incarnation that is none": forged(wordIncarnation, "xyz"),
		"time before all":          forged(wordSince, "-1"),
		"no longest lease":         forged(wordLongest, "x"),
		"word too many":            forged(wordLongest, "3600000 1"),
		"no number of nodes":       forged(wordNodes, ""),
		"nothing in it":            text(""),
		"foreign text":             text("'; return 1 --"),
		"foreign text, ended":      text("'\n return 1 --\n"),
	} {
		t.Run(name, func(t *testing.T) {
			s.Do(t, "FLUSHALL")
			vote := activated(t, n)
			change()
			forged := markerOf(t, s)
			requireNoVote(t, s, n, vote)

			for _, how := range []CheckMode{Observe, Activate} {
				incarnation, _, _ := strings.Cut(forged, " ")
				reply, err := n.CheckNode(bounded(t), how, newIncarnation(), ofThree(longest), incarnation)
				require.Nil(t, reply.Vote)
				require.True(t, reply.Remaining != 0 || OutcomeOf(err) == Refused, err)
				require.Equal(t, forged, markerOf(t, s), how)
			}

			reply := unvoted(t, n, Mark, "")
			require.InDelta(t, longest*102/100, reply.Remaining, float64(slack))
			require.NotEqual(t, forged, markerOf(t, s))
			requireNoVote(t, s, n, vote)
		})
	}
}

// A node that has forgotten its scripts gives no vote by a text: it may have forgotten its locks, too.
func TestGuard_TheTextOfAVoteIsNotSent(t *testing.T) {
	s, n, vote := startActive(t)
	s.Do(t, "SCRIPT", "FLUSH")
	requireNoVote(t, s, n, vote)
}

// What other clients hold may be as long as they said.
func TestGuard_LongestLease(t *testing.T) {
	s, n, _ := startActive(t)
	before := markerOf(t, s)
	for mine, want := range map[time.Duration]time.Duration{longest / 2: longest, 2 * longest: 2 * longest} {
		s.Do(t, "SET", marker, before)
		reply, _, _ := checkedFor(t, n, Mark, mine, "")
		require.Equal(t, longest, reply.MaxLease)
		require.Equal(t, before, markerOf(t, s))

		forge(t, s, wordRun, strings.Repeat("a", 40))
		reply, _, has := checkedFor(t, n, Mark, mine, "")
		require.False(t, has)
		require.Equal(t, want, reply.MaxLease)
		require.InDelta(t, want*102/100, reply.Remaining, float64(slack))
	}
}

// The scripts are loaded only into the process that was checked.
func TestGuard_RestartInTheMiddleOfACheck(t *testing.T) {
	redistest.NeedRedis7(t, keepsScripts)
	s, admin, vote := startActive(t, "--appendonly", "yes", "--appendfsync", "always")
	require.True(t, must(acquireVoted(admin, bounded(t), vote, "k", ownA, false))(t).OK)
	client := s.Client(t)
	n := NewRedis(interrupted{client, func() {
		s.Restart()
		until(t, func() bool { // the client is as good as new
			return client.Do(bounded(t), client.B().Ping().Build()).Error() == nil
		})
	}}, RedisSettings{})
	reply, err := n.CheckNode(bounded(t), Mark, newIncarnation(), ofThree(longest), "")
	require.Error(t, err)
	require.Nil(t, reply.Vote)
	m := s.Do(t, "SCRIPT", "EXISTS", vote.acquire.sha)
	require.Equal(t, []int64{0}, must(m.AsIntSlice())(t))
}

// interrupted does something before each SCRIPT command of a dedicated connection.
type interrupted struct {
	rueidis.Client
	before func()
}

func (c interrupted) Dedicate() (rueidis.DedicatedClient, func()) {
	conn, done := c.Client.Dedicate()
	return interruptedConn{conn, c.before}, done
}

type interruptedConn struct {
	rueidis.DedicatedClient
	before func()
}

func (c interruptedConn) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if cmd.Commands()[0] == "SCRIPT" {
		c.before()
	}
	return c.DedicatedClient.Do(ctx, cmd)
}

// The embedded server has no run id, so nothing tells that it restarted: it gets no vote, however
// long it has been marked.
func TestGuard_NeedsARunID(t *testing.T) {
	m, n := embedded(t)
	for range 2 {
		reply, _, has := checkedFor(t, n, Mark, time.Millisecond, "")
		require.Negative(t, reply.Remaining)
		require.False(t, has)
		m.FastForward(time.Second)
	}
}

// embedded is a node on the embedded server.
func embedded(t *testing.T) (*miniredis.Miniredis, *Redis) {
	t.Helper()
	m := miniredis.RunT(t)
	client := must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.Addr()}, ForceSingleClient: true, DisableCache: true}))(t)
	t.Cleanup(client.Close)
	return m, NewRedis(client, RedisSettings{})
}

// What the node says is no more than words between quotes.
func TestVoteTextIsSafe(t *testing.T) {
	before, after, named := strings.Cut(quorumAcquire.text, blankVote)
	require.True(t, named)
	for _, text := range []string{"'", "\\", "\n", "\r", "]]", "'; return 1 --", "\x00", "é"} {
		rest, whole := strings.CutPrefix(newVote("a b"+text+"c", "master_replid:"+text).acquire.text, before)
		require.True(t, whole)
		line, whole := strings.CutSuffix(rest, after)
		require.True(t, whole)
		require.Regexp(t, `^local marker, replID = '[a-zA-Z0-9 _:]+', '[a-zA-Z0-9 _:]+'\n$`, line)
	}
	shas := []string{quorumAcquire.sha, newVote("m", "r").acquire.sha, newVote("m", "s").acquire.sha, newVote("n", "r").acquire.sha}
	slices.Sort(shas)
	require.Len(t, slices.Compact(shas), 4)
}
