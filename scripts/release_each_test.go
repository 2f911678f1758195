package scripts

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Each hold ends by itself: what is another's, free or no lock costs the others
// nothing, and each lock's own listeners are told.
func TestReleaseEach(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "a", ownA)
	acquired(t, n, "b", ownB)
	s.Do(t, "SET", "string", "x")
	acquired(t, n, "c", ownA)
	listener, _ := s.Client(t).Dedicate()
	defer listener.Close()
	heard := make(chan string, 1)
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { heard <- m.Message }})
	require.NoError(t, listener.Do(bounded(t), listener.B().Subscribe().Channel(Channel("c")).Build()).Error())
	before := state(t, s)

	holds := []Hold{{"a", ownA}, {"b", ownA}, {"string", ownA}, {"free", ownA}, {"c", ownA}}
	ends := make([]Result[Released], 5)
	require.NoError(t, n.ReleaseEach(bounded(t), holds, ends))
	require.Equal(t, Result[Released]{Value: Released{Ours: true}}, ends[0])
	require.Equal(t, Result[Released]{}, ends[1])
	require.Equal(t, Refused, OutcomeOf(ends[2].Err))
	require.Equal(t, Result[Released]{}, ends[3])
	require.Equal(t, Result[Released]{Value: Released{Ours: true, Listeners: 1}}, ends[4])
	require.Equal(t, "0", <-heard)
	after := state(t, s)
	require.Len(t, after, 2)
	for _, k := range []string{"b", "string"} {
		require.Equal(t, before[k], after[k])
	}

	require.NoError(t, n.ReleaseEach(bounded(t), holds, ends)) // again: nothing more
	require.Equal(t, Result[Released]{}, ends[0])
	require.Equal(t, Result[Released]{}, ends[4])
}

// A reply with fewer or more answers than holds is none.
func TestReleaseEach_AsManyAnswersAsHolds(t *testing.T) {
	_, n := start(t)
	holds := []Hold{{"a", ownA}, {"b", ownA}}
	for _, places := range []int{1, 3} {
		ends := make([]Result[Released], places)
		require.Equal(t, Unknown, OutcomeOf(n.ReleaseEach(bounded(t), holds, ends)))
		require.Equal(t, make([]Result[Released], places), ends)
	}
}

// As CleanUp for each: what arrives later takes nothing, but what is another's or no lock
// stays as it is.
func TestCleanUpEach(t *testing.T) {
	s, n := start(t)
	acquired(t, n, "a", ownA)
	acquired(t, n, "b", ownB)
	s.Do(t, "SET", "string", "x")
	before := state(t, s)
	holds := []Hold{{"a", ownA}, {"b", ownA}, {"string", ownA}, {"free", ownA}}
	for _, ours := range []bool{true, false} {
		ends := make([]Result[Released], 4)
		require.NoError(t, n.CleanUpEach(bounded(t), holds, ends))
		require.Equal(t, Result[Released]{Value: Released{Ours: ours}}, ends[0])
		require.Equal(t, Result[Released]{}, ends[1])
		require.Equal(t, Refused, OutcomeOf(ends[2].Err))
		require.Equal(t, Result[Released]{}, ends[3])
		for _, h := range holds {
			if h.Key != "string" {
				said, err := n.Acquire(bounded(t), h.Key, h.Owner, lease)
				require.NoError(t, err)
				require.True(t, said.Gone)
			}
		}
		after := state(t, s)
		require.NotContains(t, after, "a")
		for _, k := range []string{"b", "string"} {
			require.Equal(t, before[k], after[k])
		}
		require.NotContains(t, after, tombstone("string", ownA))
	}
}
