package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
)

// refusals takes the errors out of results, all of which must be refusals, and returns the first
// word of each by its place.
func refusals[T any](t *testing.T, results []Result[T]) map[int]string {
	t.Helper()
	words := map[int]string{}
	for i, r := range results {
		if r.Err != nil {
			require.Equal(t, Refused, OutcomeOf(r.Err), r.Err)
			words[i], _, _ = strings.Cut(r.Err.Error(), " ")
			results[i].Err = nil
		}
	}
	return words
}

// Each hold is asked for by itself: what is another's, given up or no lock costs the others
// nothing, on one Redis and on a node of a quorum.
func TestAcquireEach(t *testing.T) {
	s, n, vote := startActive(t)
	plain := func(f Fencing) func([]AcquireRequest, []NodeReply) error {
		return func(asks []AcquireRequest, replies []NodeReply) error {
			results := make([]Result[AcquireReply], len(asks))
			err := n.AcquireEach(bounded(t), f, asks, results)
			for i, r := range results {
				replies[i] = NodeReply{AcquireReply: r.Value, Err: r.Err}
			}
			return err
		}
	}
	voted := func(v *Vote, fenced bool) func([]AcquireRequest, []NodeReply) error {
		return func(asks []AcquireRequest, replies []NodeReply) error {
			return n.AcquireVoted(bounded(t), v, fenced, asks, replies)
		}
	}
	for name, way := range map[string]struct {
		ask            func([]AcquireRequest, []NodeReply) error
		holder         string // of a lock that another has
		fences, clocks bool
	}{
		"plain":             {ask: plain(Fencing{})},
		"fenced":            {ask: plain(fencingHour), fences: true},
		"voted":             {ask: voted(vote, false), holder: ownB},
		"voted, fenced":     {ask: voted(vote, true), holder: ownB, clocks: true},
		"unguarded":         {ask: voted(nil, false), holder: ownB},
		"unguarded, fenced": {ask: voted(nil, true), holder: ownB, clocks: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.Do(t, "FLUSHALL")
			s.Do(t, "SET", marker, vote.marker)
			acquired(t, n, "held", ownB)
			s.Do(t, "HSET", "endless", ownB, "1")
			s.Do(t, "HSET", "nameless", "", "1")
			s.Do(t, "HSET", "foreign", "one", "1", "two", "2")
			s.Do(t, "SET", "string", "x")
			must(n.Release(bounded(t), ReleaseRequest{Key: "gone", Owner: ownA, Doubt: true}))(t)
			before, called := state(t, s), serverMicros(t, s)
			var asks []AcquireRequest
			for _, key := range []string{"free", "held", "endless", "gone", "string", "nameless", "foreign", "also free"} {
				asks = append(asks, AcquireRequest{key, ownA, lease})
			}
			replies := make([]NodeReply, len(asks))
			require.NoError(t, way.ask(asks, replies))
			for _, i := range []int{0, 7} {
				require.True(t, replies[i].OK)
				require.Equal(t, way.fences, replies[i].Fence > 0)
				require.Equal(t, way.clocks, replies[i].Clock >= called && replies[i].Clock <= serverMicros(t, s))
				require.Equal(t, []string{ownA}, listed(t, s, "HKEYS", asks[i].Key))
				lasts(t, s, asks[i].Key, lease)
			}
			require.InDelta(t, lease, replies[1].Remaining, float64(slack))
			replies[1].Remaining = NoExpiry
			another := NodeReply{AcquireReply: AcquireReply{Remaining: NoExpiry, Why: errs.HeldBy("")}, Holder: way.holder}
			require.Equal(t, []NodeReply{another, another, {AcquireReply: AcquireReply{Gone: true}}}, replies[1:4])
			for _, r := range replies[4:7] {
				requireRefused(t, "WRONGTYPE", r.Err)
			}
			after := state(t, s)
			for _, ask := range asks[1:7] {
				require.Equal(t, before[ask.Key], after[ask.Key])
			}
			require.NoError(t, way.ask(asks[:1], replies[:1])) // again
			require.True(t, replies[0].OK)
		})
	}
	s.Do(t, "SET", marker, "other")
	replies := make([]NodeReply, 2)
	require.NoError(t, n.AcquireVoted(bounded(t), vote, false, []AcquireRequest{{"new", ownA, lease}, {"held", ownA, lease}}, replies))
	require.Equal(t, []NodeReply{{NoVote: true}, {NoVote: true}}, replies)
}

// Holds of one call end as each asks for it, and what is another's, free or no lock costs
// the others nothing.
func TestEndEach(t *testing.T) {
	s, n := start(t)
	ours := []string{"told", "quiet", "doubt", "fenced", "quiet, fenced", "told in doubt"}
	for _, key := range ours {
		acquired(t, n, key, ownA)
		s.Do(t, "SET", counter(key), "100")
	}
	acquired(t, n, "another's", ownB)
	s.Do(t, "SET", counter("another's"), "100")
	s.Do(t, "SET", "string", "x")
	heard := listen(t, s)
	heard.do(heard.conn.B().Psubscribe().Pattern("redisson*").Build())
	before := state(t, s)

	holds := []ReleaseRequest{
		{Key: "told", Owner: ownA, Notify: true},
		{Key: "doubt", Owner: ownA, Doubt: true, LastFence: 7},
		{Key: "quiet", Owner: ownA},
		{Key: "fenced", Owner: ownA, Notify: true, LastFence: 7},
		{Key: "another's", Owner: ownA, Notify: true, Doubt: true, LastFence: 7},
		{Key: "string", Owner: ownA, Notify: true, Doubt: true},
		{Key: "free", Owner: ownA, Notify: true, Doubt: true},
		{Key: "quiet, fenced", Owner: ownA, LastFence: 200},
		{Key: "another's", Owner: "*", Notify: true},
		{Key: "another's", Owner: "mode", Notify: true},
		{Key: "told in doubt", Owner: ownA, Notify: true, Doubt: true},
	}
	ended, told := Result[ReleaseReply]{Value: ReleaseReply{Ours: true}}, Result[ReleaseReply]{Value: ReleaseReply{Ours: true, Listeners: 1}}
	results := make([]Result[ReleaseReply], len(holds))
	require.NoError(t, n.ReleaseEach(bounded(t), holds, results))
	require.Equal(t, map[int]string{5: "WRONGTYPE"}, refusals(t, results))
	require.Equal(t, []Result[ReleaseReply]{told, ended, ended, told, {}, {}, {}, ended, {}, {}, told}, results)
	heard.requireSaid(scripts.Channel("told")+" 0", scripts.Channel("fenced")+" 0", scripts.Channel("told in doubt")+" 0")

	after := state(t, s)
	for _, key := range append(ours, tombstone("told", ownA), tombstone("string", ownA)) { // a string is no lock
		require.NotContains(t, after, key)
	}
	for _, key := range []string{"another's", "string", counter("another's"), counter("told"), counter("doubt"), counter("quiet, fenced")} {
		require.Equal(t, before[key], after[key], key)
	}
	require.Equal(t, "7", text(t, s, "GET", counter("fenced")), "the rest is given back")
	for _, key := range []string{"doubt", "another's", "free", "told in doubt"} {
		require.Equal(t, "1", text(t, s, "GET", tombstone(key, ownA)))
		lasts(t, s, tombstone(key, ownA), time.Minute)
	}

	require.NoError(t, n.ReleaseEach(bounded(t), holds, results)) // again: nothing more
	refusals(t, results)
	require.Equal(t, make([]Result[ReleaseReply], len(holds)), results)
}

// Releases that leave nothing more share calls of their own, which send less.
func TestEndEachWithoutMore(t *testing.T) {
	s, n := start(t)
	holds := []ReleaseRequest{{Key: "a", Owner: ownA, Notify: true}, {Key: "b", Owner: ownA}, {Key: "c", Owner: ownA, Notify: true}}
	acquired(t, n, "a", ownA)
	acquired(t, n, "b", ownA)
	results := make([]Result[ReleaseReply], len(holds))
	require.NoError(t, n.ReleaseEach(bounded(t), holds, results))
	ended := Result[ReleaseReply]{Value: ReleaseReply{Ours: true}}
	require.Equal(t, []Result[ReleaseReply]{ended, ended, {}}, results)
	require.Empty(t, state(t, s))

	sent := forEach(holds, func(in input, h ReleaseRequest) input { return releaseInput(in, h, false) })
	require.Equal(t, []string{"a", "b", "c"}, sent.keys)
	require.Len(t, sent.args, 1+2*len(holds))
}

// A reply with fewer or more answers than holds is none: a missing one must not pass for an answer.
func TestEach_AsManyAnswersAsHolds(t *testing.T) {
	_, n, vote := startActive(t)
	for _, places := range []int{1, 3} {
		replies := make([]NodeReply, places)
		err := n.AcquireVoted(bounded(t), vote, false, []AcquireRequest{{"b", ownA, lease}, {"c", ownA, lease}}, replies)
		require.Equal(t, Unknown, OutcomeOf(err), err)
		require.Equal(t, make([]NodeReply, places), replies)
		ends := make([]Result[ReleaseReply], places)
		require.Equal(t, Unknown, OutcomeOf(n.ReleaseEach(bounded(t), []ReleaseRequest{{Key: "b", Owner: ownA}, {Key: "c", Owner: ownA}}, ends)))
		require.Equal(t, make([]Result[ReleaseReply], places), ends)
	}
}

// Each hold ends by itself, and each lock goes to its next waiter: one of this
// client is in the answer, another's is notified. So it is when owners in doubt leave.
func TestFairReleaseEachAndLeaveEach(t *testing.T) {
	r := newHarness(t)
	f, b := r.of(ofA(1)), r.of(ofB(1))
	keys := []string{"k", "string", "others", "free", "alone"}
	var holds []FairReleaseRequest
	var leaves []LeaveRequest
	for i, key := range keys {
		holds = append(holds, fairHold(key, ofA(1+i), 0))
		leaves = append(leaves, LeaveRequest{key, []string{ofA(1 + i)}, nil})
	}
	ends := map[string]func(results []Result[FairReply]) error{
		"release": func(results []Result[FairReply]) error { return f.ReleaseEach(bounded(t), holds, results) },
		"leave":   func(results []Result[FairReply]) error { return f.LeaveEach(bounded(t), leaves, results) },
	}
	for name, ours := range map[string]bool{"release": false, "leave": true} { // what the answer of a free lock says
		r.s.Do(t, "FLUSHALL")
		r.s.Do(t, "SET", "string", "x")
		for _, i := range []int{0, 2, 4} {
			require.True(t, must(f.Acquire(bounded(t), AcquireRequest{keys[i], ofA(1 + i), lease}))(t).OK)
		}
		r.waits(ofA(8))
		r.subscribe(b.Inbox("others"))
		must(b.Enter(bounded(t), "others", ofB(1)))(t)

		ended, free := Result[FairReply]{Value: FairReply{Ours: true}}, Result[FairReply]{Value: FairReply{Ours: ours}}
		results := make([]Result[FairReply], len(holds))
		require.NoError(t, ends[name](results))
		require.Equal(t, map[int]string{1: "WRONGTYPE"}, refusals(t, results))
		require.Equal(t, []Result[FairReply]{{Value: FairReply{Ours: true, Grant: granted(ofA(8))}}, {}, ended, free, ended}, results)
		r.requireHeld(ofA(8), grantLease)
		require.Len(t, r.messages(), 1)
		require.Zero(t, number(t, r.s, "EXISTS", "alone"))
	}

	for i := range holds {
		holds[i].Doubt, holds[i].Served = true, []string{ofA(9)}
	}
	results := make([]Result[FairReply], len(holds))
	require.NoError(t, f.ReleaseEach(bounded(t), holds, results)) // again: nobody is served
	require.Equal(t, Result[FairReply]{}, results[0])
	for i, key := range keys {
		require.True(t, key == "string" || must(f.Acquire(bounded(t), AcquireRequest{key, ofA(1 + i), lease}))(t).Gone, key)
	}
	r.requireHeld(ofA(8), grantLease)
	r.requireSaid()
}
