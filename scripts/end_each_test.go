package scripts

import (
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Holds of one call end as each asks for it, and what is another's, free or no lock costs
// the others nothing.
func TestEndEach(t *testing.T) {
	s, n := start(t)
	for _, key := range []string{"told", "quiet", "doubt", "fenced", "quiet, fenced"} {
		acquired(t, n, key, ownA)
		s.Do(t, "SET", counter(key), "100")
	}
	acquired(t, n, "another's", ownB)
	s.Do(t, "SET", counter("another's"), "100")
	s.Do(t, "SET", "string", "x")
	listener, _ := s.Client(t).Dedicate()
	defer listener.Close()
	received := make(chan string, 8)
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { received <- m.Channel + " " + m.Message }})
	require.NoError(t, listener.Do(bounded(t), listener.B().Psubscribe().Pattern("*").Build()).Error())
	before := state(t, s)

	holds := []Ending{
		{Key: "told", Owner: ownA, Notify: true},
		{Key: "doubt", Owner: ownA, Doubt: true, LastFence: 7},
		{Key: "quiet", Owner: ownA},
		{Key: "fenced", Owner: ownA, Notify: true, LastFence: 7},
		{Key: "another's", Owner: ownA, Notify: true, LastFence: 7},
		{Key: "string", Owner: ownA, Notify: true, Doubt: true},
		{Key: "free", Owner: ownA, Notify: true, Doubt: true},
		{Key: "quiet, fenced", Owner: ownA, LastFence: 200},
	}
	ours := Result[Released]{Value: Released{Ours: true}}
	ends := make([]Result[Released], len(holds))
	require.NoError(t, n.EndEach(bounded(t), holds, ends))
	require.Equal(t, Refused, OutcomeOf(ends[5].Err))
	ends[0].Value.Listeners, ends[3].Value.Listeners, ends[5].Err = 0, 0, nil // PUBLISH counts no patterns
	require.Equal(t, []Result[Released]{ours, ours, ours, ours, {}, {}, {}, ours}, ends)
	s.Do(t, "PUBLISH", "over", "")
	for _, want := range []string{Channel("told") + " 0", Channel("fenced") + " 0", "over "} {
		require.Equal(t, want, <-received)
	}

	after := state(t, s)
	for _, key := range []string{"told", "quiet", "doubt", "fenced", "quiet, fenced"} {
		require.NotContains(t, after, key)
	}
	for _, key := range []string{"another's", "string", counter("another's"), counter("told"), counter("doubt"), counter("quiet, fenced")} {
		require.Equal(t, before[key], after[key], key)
	}
	text := text(t, s, "GET", counter("fenced"))
	require.Equal(t, "7", text, "the rest is given back")
	for _, key := range []string{"doubt", "free"} {
		require.Contains(t, after, tombstone(key, ownA))
	}
	require.NotContains(t, after, tombstone("told", ownA))
	require.NotContains(t, after, tombstone("string", ownA), "it is no lock")

	require.NoError(t, n.EndEach(bounded(t), holds, ends)) // again: nothing more
	require.Equal(t, Result[Released]{}, ends[0])
	require.Equal(t, Result[Released]{}, ends[3])
}

// A reply with fewer or more answers than holds is none.
func TestEach_AsManyAnswersAsHolds(t *testing.T) {
	_, n := start(t)
	for _, places := range []int{1, 3} {
		ends := make([]Result[Released], places)
		require.Equal(t, Unknown, OutcomeOf(n.EndEach(bounded(t), []Ending{{Key: "b", Owner: ownA}, {Key: "c", Owner: ownA}}, ends)))
		require.Equal(t, make([]Result[Released], places), ends)
	}
}
