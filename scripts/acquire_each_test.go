package scripts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each hold is asked for by itself: what is another's, given up or no lock costs the
// others nothing.
func TestAcquireEach(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "held", ownB)
	s.Do(t, "HSET", "endless", ownB, "1")
	s.Do(t, "HSET", "nameless", "", "1")
	s.Do(t, "HSET", "foreign", "one", "1", "two", "2")
	s.Do(t, "SET", "string", "x")
	_, err := n.CleanUp(bounded(t), "gone", ownA)
	require.NoError(t, err)
	for _, f := range []*Fencing{nil, fencingHour} {
		before := state(t, s)
		asks := []Ask{{"free", ownA, lease}, {"held", ownA, lease}, {"endless", ownA, lease}, {"string", ownA, lease}, {"gone", ownA, lease}, {"nameless", ownA, lease}, {"foreign", ownA, lease}}
		said := make([]Result[Acquired], len(asks))
		require.NoError(t, n.AcquireEach(bounded(t), f, asks, said))
		require.True(t, said[0].Value.OK)
		require.Equal(t, f != nil, said[0].Value.Fence > 0)
		require.InDelta(t, lease, said[1].Value.Remaining, float64(slack))
		require.Equal(t, Result[Acquired]{Value: Acquired{Remaining: NoExpiry}}, said[2])
		require.Equal(t, Refused, OutcomeOf(said[3].Err))
		require.Equal(t, Result[Acquired]{Value: Acquired{Gone: true}}, said[4])
		for _, i := range []int{5, 6} {
			require.ErrorContains(t, said[i].Err, "WRONGTYPE")
			require.Equal(t, Refused, OutcomeOf(said[i].Err))
		}
		after := state(t, s)
		for _, k := range []string{"held", "endless", "string", "nameless", "foreign"} {
			require.Equal(t, before[k], after[k])
		}

		require.NoError(t, n.AcquireEach(bounded(t), f, asks[:1], said[:1])) // again
		require.True(t, said[0].Value.OK)
		_, err := n.Release(bounded(t), "free", ownA, 0)
		require.NoError(t, err)
	}
}
