package scripts

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestCheckMarksAFreshNode(t *testing.T) {
	s, n := start(t)
	first, vote := checked(t, n, Mark)
	require.False(t, has(vote))
	require.True(t, first.Marked)
	require.Equal(t, ofThree(longest), first.Deployment)
	require.Equal(t, "noeviction", first.Policy)
	require.Regexp(t, `^\d+\.\d+\.\d+$`, first.Version)
	run := must(n.runID(bounded(t)))(t)
	require.Equal(t, run, first.Run)
	// The longest lease and a hundredth for each of two clocks, and 2 ms.
	require.InDelta(t, longest.Milliseconds()*102/100+2, first.Left.Milliseconds(), slackMillis)

	before := state(t, s)
	for _, how := range []CheckMode{Mark, Observe, Activate} {
		again, vote := checked(t, n, how)
		require.False(t, has(vote))
		require.False(t, again.Marked)
		require.Equal(t, first.Epoch, again.Epoch)
		require.Positive(t, again.Left)
	}
	require.Equal(t, before, state(t, s))
}

func TestQuarantineEnds(t *testing.T) {
	s, n := start(t)
	const short = 200 * time.Millisecond
	began := time.Now()
	var vote *Vote
	until(t, func() bool {
		var err error
		_, vote, err = n.CheckNode(bounded(t), Mark, newEpoch(), ofThree(short), "")
		require.NoError(t, err)
		return vote != nil
	})
	require.GreaterOrEqual(t, time.Since(began), short*102/100+time.Millisecond)
	require.True(t, voted(t, n, vote, ownA).OK)

	// The margin, where it can be seen.
	s.Do(t, "DEL", marker)
	checked(t, n, Mark)
	forge(t, s, wordSince, decimal(serverMicros(t, s)/1000-longest.Milliseconds()))
	said, vote := checked(t, n, Mark)
	require.False(t, has(vote))
	require.InDelta(t, longest.Milliseconds()*2/100, said.Left.Milliseconds(), slackMillis)
}

// A marker that is not this boot's, this replication ID's or the past's is no vote, and is
// replaced by a quarantine; telling and activating leave it.
func TestGuard_MarkerChecks(t *testing.T) {
	s, n := start(t)
	other := strings.Repeat("a", 40)
	for name, change := range map[string]func(){
		"other boot":          func() { forge(t, s, wordRun, other) },
		"other replID":        func() { forge(t, s, wordReplID, other) },
		"clock stepped back":  func() { forge(t, s, wordSince, decimal(serverMicros(t, s)/1000+60_000)) },
		"no boot":             func() { forge(t, s, wordRun, "-") },
		"epoch that is none":  func() { forge(t, s, wordEpoch, "xyz") },
		"time before all":     func() { forge(t, s, wordSince, "-1") },
		"no longest lease":    func() { forge(t, s, wordLongest, "x") },
		"word too many":       func() { forge(t, s, wordLongest, "3600000 1") },
		"no number of nodes":  func() { forge(t, s, wordNodes, "") },
		"nothing in it":       func() { s.Do(t, "SET", marker, "") },
		"foreign text":        func() { s.Do(t, "SET", marker, "'; return 1 --") },
		"foreign text, ended": func() { s.Do(t, "SET", marker, "'\n return 1 --\n") },
	} {
		t.Run(name, func(t *testing.T) {
			s.Do(t, "FLUSHALL")
			vote := activated(t, n)
			change()
			forged := markerOf(t, s)
			requireNoVote(t, s, n, vote)

			for _, how := range []CheckMode{Observe, Activate} {
				epoch, _, _ := strings.Cut(forged, " ")
				said, new, err := n.CheckNode(bounded(t), how, newEpoch(), ofThree(longest), epoch)
				require.False(t, has(new))
				require.True(t, said.Left != 0 || OutcomeOf(err) == Refused, err)
				require.False(t, said.Marked)
				require.Equal(t, forged, markerOf(t, s), how)
			}

			said, new := checked(t, n, Mark)
			require.False(t, has(new))
			require.True(t, said.Marked)
			require.InDelta(t, longest*102/100, said.Left, float64(slack))
			require.NotEqual(t, forged, markerOf(t, s))
			requireNoVote(t, s, n, vote)
		})
	}
}

// What other clients hold may be as long as they said.
func TestGuard_LongestLease(t *testing.T) {
	s, n, _ := startActive(t)
	before := markerOf(t, s)
	for _, mine := range []time.Duration{longest / 2, 2 * longest} {
		said, _, err := n.CheckNode(bounded(t), Mark, newEpoch(), ofThree(mine), "")
		require.NoError(t, err)
		require.Equal(t, longest, said.Longest)
		require.Equal(t, before, markerOf(t, s))
	}
	for mine, want := range map[time.Duration]time.Duration{longest / 2: longest, 2 * longest: 2 * longest} {
		s.Do(t, "SET", marker, before)
		forge(t, s, wordRun, strings.Repeat("a", 40))
		said, vote, err := n.CheckNode(bounded(t), Mark, newEpoch(), ofThree(mine), "")
		require.NoError(t, err)
		require.False(t, has(vote))
		require.True(t, said.Marked)
		require.Equal(t, want, said.Longest)
		require.InDelta(t, want*102/100, said.Left, float64(slack))
	}
}

func TestActivate(t *testing.T) {
	s, n := start(t)
	activate := func(of string) (Standing, *Vote) {
		t.Helper()
		said, vote, err := n.CheckNode(bounded(t), Activate, newEpoch(), ofThree(longest), of)
		require.NoError(t, err)
		return said, vote
	}
	said, vote := activate(newEpoch())
	require.False(t, has(vote))
	require.Empty(t, said.Epoch)
	require.Empty(t, state(t, s), "no marker, nothing to activate")

	said, _ = checked(t, n, Mark)
	began, begun := said.Epoch, markerOf(t, s)
	said, _ = checked(t, n, Observe)
	require.Equal(t, began, said.Epoch)
	require.Equal(t, begun, markerOf(t, s))
	for _, of := range []string{"", "none", newEpoch(), began[1:], began + "0"} {
		said, vote = activate(of)
		require.False(t, has(vote))
		require.False(t, said.Marked)
		require.Equal(t, begun, markerOf(t, s))
	}
	said, vote = activate(began)
	require.True(t, has(vote))
	require.True(t, said.Marked)
	require.Zero(t, said.Left)
	require.NotEqual(t, began, said.Epoch)

	require.Regexp(t, `^[0-9a-f]+ [0-9a-f]{40} [0-9a-f]{40} 0 3600000 3$`, markerOf(t, s))
	lasts(t, s, "holdfast_node", -1)

	activated := markerOf(t, s)
	said, again := activate(began) // the reply was lost
	require.Equal(t, vote, again)
	require.False(t, said.Marked)
	require.Equal(t, activated, markerOf(t, s))
}

// The scripts are loaded only into the process that was checked.
func TestGuard_RestartInTheMiddleOfACheck(t *testing.T) {
	redistest.NeedRedis7(t, keepsScripts)
	s, admin, vote := startActive(t, "--appendonly", "yes", "--appendfsync", "always")
	require.True(t, voted(t, admin, vote, ownA).OK)
	client := s.Client(t)
	n := NewNode(interrupted{client, func() {
		s.Restart()
		until(t, func() bool { // the client is as good as new
			return client.Do(bounded(t), client.B().Ping().Build()).Error() == nil
		})
	}})
	_, none, err := n.CheckNode(bounded(t), Mark, newEpoch(), ofThree(longest), "")
	require.Error(t, err)
	require.False(t, has(none))
	m := s.Do(t, "SCRIPT", "EXISTS", vote.acquire.sha)
	known := must(m.AsIntSlice())(t)
	require.Equal(t, []int64{0}, known)
}

// interrupted does something before each SCRIPT command.
type interrupted struct {
	rueidis.Client
	before func()
}

func (c interrupted) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if cmd.Commands()[0] == "SCRIPT" {
		c.before()
	}
	return c.Client.Do(ctx, cmd)
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
	m := miniredis.RunT(t)
	client := must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.Addr()}, ForceSingleClient: true, DisableCache: true}))(t)
	t.Cleanup(client.Close)
	for range 2 {
		said, vote, err := NewNode(client).CheckNode(bounded(t), Mark, newEpoch(), ofThree(time.Millisecond), "")
		require.NoError(t, err)
		require.Negative(t, said.Left)
		require.False(t, has(vote))
		m.FastForward(time.Second)
	}
}
