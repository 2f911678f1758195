package wire

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

const longest = time.Hour // lease of the deployment: no quarantine ends by itself

var fencingHour = Fencing{Reserve: 10, Expiry: time.Hour}

// keepsScripts is why there is no restart guard on servers before Redis 7.0.
const keepsScripts = "it keeps scripts over a restart and hands them to replicas"

var incarnations atomic.Int64

// newIncarnation is never the same twice.
func newIncarnation() string { return fmt.Sprintf("e%07x", incarnations.Add(1)) }

// ofThree is a deployment of three nodes.
func ofThree(longest time.Duration) Deployment { return Deployment{longest, 3} }

// checkedFor is a check by a client with that longest lease, for an incarnation if it activates. It
// reports whether it got a vote, too: one that an assertion prints is two scripts long.
func checkedFor(t testing.TB, n *Redis, how CheckMode, longest time.Duration, of string) (s Standing, vote *Vote, has bool) {
	t.Helper()
	s, err := n.CheckNode(bounded(t), how, newIncarnation(), ofThree(longest), of)
	require.NoError(t, err)
	pool, _ := n.pool("")
	require.Zero(t, pool.lent)
	return s, s.Vote, s.Vote != nil
}

// unvoted is the check of a node that gets no vote by it.
func unvoted(t testing.TB, n *Redis, how CheckMode, of string) Standing {
	t.Helper()
	s, _, has := checkedFor(t, n, how, longest, of)
	require.False(t, has)
	return s
}

// activated gives a fresh node its vote.
func activated(t testing.TB, n *Redis) *Vote {
	t.Helper()
	s := unvoted(t, n, Mark, "")
	_, vote, has := checkedFor(t, n, Activate, longest, s.Incarnation)
	require.True(t, has)
	return vote
}

// startActive is a server that has a vote.
func startActive(t testing.TB, args ...string) (*redistest.Server, *Redis, *Vote) {
	t.Helper()
	s, n := start(t, args...)
	return s, n, activated(t, n)
}

// acquireVoted asks for one hold.
func acquireVoted(n *Redis, ctx context.Context, vote *Vote, key, owner string, fenced bool) (NodeReply, error) {
	replies := make([]NodeReply, 1)
	err := n.AcquireVoted(ctx, vote, fenced, []AcquireRequest{asking(key, owner)}, replies)
	if err == nil {
		err = replies[0].Err
	}
	return replies[0], err
}

// requireNoVote requires that neither kind of acquire is taken, and that nothing
// is changed.
func requireNoVote(t testing.TB, s *redistest.Server, n *Redis, vote *Vote) {
	t.Helper()
	before := state(t, s)
	for _, fenced := range []bool{false, true} {
		require.Equal(t, NodeReply{NoVote: true}, must(acquireVoted(n, bounded(t), vote, "k", ownB, fenced))(t))
	}
	require.Equal(t, before, state(t, s))
}

// markerOf is the marker's text.
func markerOf(t testing.TB, s *redistest.Server) string { t.Helper(); return text(t, s, "GET", marker) }

// forge changes one word of the marker.
func forge(t testing.TB, s *redistest.Server, word int, to string) {
	t.Helper()
	words := strings.Fields(markerOf(t, s))
	require.Len(t, words, 6)
	require.NotEqual(t, to, words[word])
	words[word] = to
	s.Do(t, "SET", marker, strings.Join(words, " "))
}

// The words of a marker.
const (
	wordIncarnation = iota
	wordRun
	wordReplID
	wordSince
	wordLongest
	wordNodes
)

// end is [Redis.ReleaseEach] for one.
func end(n *Redis, ctx context.Context, e ReleaseRequest) (ReleaseReply, error) {
	return each(ctx, n.ReleaseEach, e)
}
