package scripts

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

const longest = time.Hour // lease of the deployment: no quarantine ends by itself

var fencingHour = &Fencing{Reserve: 10, Expiry: time.Hour}

// keepsScripts is why there is no restart guard on servers before Redis 7.0.
const keepsScripts = "it keeps scripts over a restart and hands them to replicas"

var epochs atomic.Int64

// newEpoch is never the same twice.
func newEpoch() string { return fmt.Sprintf("e%07x", epochs.Add(1)) }

// ofThree is a deployment of three nodes.
func ofThree(longest time.Duration) Deployment { return Deployment{longest, 3} }

func checked(t testing.TB, n *Node, how CheckMode) (Standing, *Vote) {
	t.Helper()
	s, vote, err := n.CheckNode(bounded(t), how, newEpoch(), ofThree(longest), "")
	require.NoError(t, err)
	return s, vote
}

// activated gives a fresh node its vote.
func activated(t testing.TB, n *Node) *Vote {
	t.Helper()
	s, vote := checked(t, n, Mark)
	require.True(t, s.Marked)
	require.False(t, has(vote))
	_, vote, err := n.CheckNode(bounded(t), Activate, newEpoch(), ofThree(longest), s.Epoch)
	require.NoError(t, err)
	require.True(t, has(vote))
	return vote
}

// startActive is a server that has a vote.
func startActive(t testing.TB, args ...string) (*redistest.Server, *Node, *Vote) {
	t.Helper()
	s, n := start(t, args...)
	return s, n, activated(t, n)
}

// has is for assertions: a vote that they print is two scripts long.
func has(vote *Vote) bool { return vote != nil }

// acquireVoted asks for one hold.
func acquireVoted(n *Node, ctx context.Context, vote *Vote, key, owner string, lease time.Duration, fenced bool) (NodeReply, error) {
	nodeReplies := make([]NodeReply, 1)
	err := n.AcquireVoted(ctx, vote, fenced, []Ask{{key, owner, lease}}, nodeReplies)
	if err == nil {
		err = nodeReplies[0].Err
	}
	return nodeReplies[0], err
}

func voted(t testing.TB, n *Node, vote *Vote, owner string) NodeReply {
	t.Helper()
	return must(acquireVoted(n, bounded(t), vote, "k", owner, lease, false))(t)
}

// requireNoVote requires that neither kind of acquire is taken, and that nothing
// is changed.
func requireNoVote(t testing.TB, s *redistest.Server, n *Node, vote *Vote) {
	t.Helper()
	before := state(t, s)
	for _, f := range []bool{false, true} {
		b := must(acquireVoted(n, bounded(t), vote, "k", ownB, lease, f))(t)
		require.Equal(t, NodeReply{NoVote: true}, b)
	}
	require.Equal(t, before, state(t, s))
}

// markerOf is the marker's text; "" if there is none.
func markerOf(t testing.TB, s *redistest.Server) string {
	t.Helper()
	m := s.Do(t, "GET", marker)
	if m.IsNil() {
		return ""
	}
	return must(m.ToString())(t)
}

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
	wordEpoch = iota
	wordRun
	wordReplID
	wordSince
	wordLongest
	wordNodes
)

// one is a call for one of many.
func one[T any](call func([]Result[T]) error) (T, error) {
	r := make([]Result[T], 1)
	err := call(r)
	return r[0].Value, cmp.Or(err, r[0].Err)
}

// end is [Node.EndEach] for one.
func end(n *Node, ctx context.Context, e Ending) (Released, error) {
	return one(func(r []Result[Released]) error { return n.EndEach(ctx, []Ending{e}, r) })
}

// undo ends a failed round.
func undo(n *Node, ctx context.Context, key, owner string, doubt bool) error {
	_, err := end(n, ctx, Ending{Key: key, Owner: owner, Doubt: doubt})
	return err
}
