package scripts

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVotedAcquire(t *testing.T) {
	s, n, vote := startActive(t)
	for _, v := range []*Vote{vote, nil} {
		for _, f := range []bool{false, true} {
			get := func(owner string) NodeReply {
				t.Helper()
				b, err := acquireVoted(n, bounded(t), v, "k", owner, lease, f)
				require.NoError(t, err)
				return b
			}
			called := serverMicros(t, s)
			b := get(ownA)
			require.True(t, b.OK)
			if f { // the server's clock, between those two readings of it
				require.GreaterOrEqual(t, b.Clock, called)
				require.LessOrEqual(t, b.Clock, serverMicros(t, s))
			} else {
				require.Zero(t, b.Clock)
			}

			before := state(t, s)
			b = get(ownB)
			require.Equal(t, ownA, b.Holder)
			require.False(t, b.OK || b.Gone || b.NoVote)
			require.InDelta(t, lease, b.Remaining, float64(slack))
			require.Equal(t, before, state(t, s))
			s.Do(t, "PERSIST", "k")
			require.Equal(t, NodeReply{Acquired: Acquired{Remaining: NoExpiry}, Holder: ownA}, get(ownB))

			require.NoError(t, undo(n, bounded(t), "k", ownA, true))
			require.Equal(t, NodeReply{Acquired: Acquired{Gone: true}}, get(ownA))
			s.Do(t, "DEL", "k", tombstone("k", ownA), counter("k"))
		}
	}
}

// Of many, each is taken or refused for itself.
func TestVotedAcquireMany(t *testing.T) {
	s, n, vote := startActive(t)
	for _, v := range []*Vote{vote, nil} {
		for _, f := range []bool{false, true} {
			s.Do(t, "SET", "string", "x")
			require.NoError(t, undo(n, bounded(t), "given up", ownA, true))
			acquired(t, n, "held", ownB)
			var asks []Ask
			for _, key := range []string{"string", "free", "held", "given up", "also free"} {
				asks = append(asks, Ask{key, ownA, lease})
			}
			said := make([]NodeReply, len(asks))
			require.NoError(t, n.AcquireVoted(bounded(t), v, f, asks, said))
			require.Equal(t, Refused, OutcomeOf(said[0].Err))
			require.ErrorContains(t, said[0].Err, "WRONGTYPE")
			require.Equal(t, ownB, said[2].Holder)
			require.False(t, said[2].OK)
			require.Equal(t, NodeReply{Acquired: Acquired{Gone: true}}, said[3])
			for _, i := range []int{1, 4} {
				require.True(t, said[i].OK)
				require.NoError(t, said[i].Err)
				require.Equal(t, f, said[i].Clock > 0)
				held := listed(t, s, "HKEYS", asks[i].Key)
				require.Equal(t, []string{ownA}, held)
			}
			for _, a := range asks {
				s.Do(t, "DEL", a.Key, counter(a.Key), tombstone(a.Key, ownA))
			}
		}
	}
	acquired(t, n, "held", ownB)
	s.Do(t, "SET", marker, "other")
	said := make([]NodeReply, 2)
	require.NoError(t, n.AcquireVoted(bounded(t), vote, false, []Ask{{"free", ownA, lease}, {"held", ownA, lease}}, said))
	require.Equal(t, []NodeReply{{NoVote: true}, {NoVote: true}}, said)
}

// What the node says is no more than words between quotes.
func TestVoteTextIsSafe(t *testing.T) {
	for _, text := range []string{"'", "\\", "\n", "\r", "]]", "'; return 1 --", "\x00", "é"} {
		v := newVote("a b"+text+"c", "master_replid:"+text)
		before, after, named := strings.Cut(quorumAcquire.text, noVote)
		require.True(t, named)
		rest, whole := strings.CutPrefix(v.acquire.text, before)
		require.True(t, whole)
		line, whole := strings.CutSuffix(rest, after)
		require.True(t, whole)
		require.Regexp(t, `^local marker, replID = '[a-zA-Z0-9 _:]+', '[a-zA-Z0-9 _:]+'\n$`, line)
	}
	shas := []string{quorumAcquire.sha, newVote("m", "r").acquire.sha, newVote("m", "s").acquire.sha, newVote("n", "r").acquire.sha}
	slices.Sort(shas)
	require.Len(t, slices.Compact(shas), 4)
}
