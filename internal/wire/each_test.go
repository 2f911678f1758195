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
			for i := range asks {
				asks[i].Fencing = f
			}
			err := n.AcquireEach(bounded(t), asks, results)
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
				asks = append(asks, asking(key, ownA))
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
	require.NoError(t, n.AcquireVoted(bounded(t), vote, false, []AcquireRequest{asking("new", ownA), asking("held", ownA)}, replies))
	require.Equal(t, []NodeReply{{NoVote: true}, {NoVote: true}}, replies)
}

// So it is where others wait in order.
func TestFairAcquireEach(t *testing.T) {
	for _, fencing := range []Fencing{{}, fencingHour} {
		r := newHarness(t, func(s *FairSettings) { s.Fencing = fencing })
		f := r.of(ofA(1))
		r.s.Do(t, "HSET", "held", ownB, "1")
		r.s.Do(t, "SET", "string", "x")
		r.follow(ofC(1), ofB(1))
		r.expire()
		must(f.Leave(bounded(t), LeaveRequest{"gone", []string{ofA(5)}, nil}))(t)
		before := state(t, r.s)

		asks := []AcquireRequest{asking("free", ofA(1)), asking("held", ofA(2)), asking("k", ofA(3)), asking("string", ofA(4)),
			asking("gone", ofA(5)), asking("last", ofA(6)), asking("bad", ofJ(1))}
		results := make([]Result[AcquireReply], len(asks))
		require.NoError(t, f.AcquireEach(bounded(t), asks, results))
		require.Equal(t, map[int]string{3: "WRONGTYPE", 6: "owner"}, refusals(t, results))
		for _, i := range []int{0, 5} {
			require.Equal(t, fencing.Reserve != 0, results[i].Value.Fence > 0)
			results[i].Value.Fence, results[i].Value.FenceEnd = 0, 0
		}
		require.Equal(t, []Result[AcquireReply]{
			{Value: AcquireReply{OK: true}}, {Value: AcquireReply{Remaining: NoExpiry, Why: errs.HeldBy("")}}, {Value: AcquireReply{Remaining: time.Millisecond}}, {},
			{Value: AcquireReply{Gone: true}}, {Value: AcquireReply{OK: true}}, {},
		}, results)
		r.requireHeld(ofB(1), grantLease)
		require.Len(t, r.messages(), 1, "the waiter is notified")
		after := state(t, r.s)
		require.Equal(t, []string{before["held"], before["string"]}, []string{after["held"], after["string"]})
	}
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

// Releases that leave no tombstone and give back no fences, in one call.
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
}

// A reply with fewer or more answers than holds is none: a missing one must not pass for an answer.
func TestEach_AsManyAnswersAsHolds(t *testing.T) {
	_, n, vote := startActive(t)
	for _, places := range []int{1, 3} {
		replies := make([]NodeReply, places)
		err := n.AcquireVoted(bounded(t), vote, false, []AcquireRequest{asking("b", ownA), asking("c", ownA)}, replies)
		require.Equal(t, Unknown, OutcomeOf(err), err)
		require.Equal(t, make([]NodeReply, places), replies)
		ends := make([]Result[ReleaseReply], places)
		require.Equal(t, Unknown, OutcomeOf(n.ReleaseEach(bounded(t), []ReleaseRequest{{Key: "b", Owner: ownA}, {Key: "c", Owner: ownA}}, ends)))
		require.Equal(t, make([]Result[ReleaseReply], places), ends)
	}
}

// Each hold ends by itself, and each lock goes to its next waiter: one of this
// client is in the answer, another's is notified.
func TestFairReleaseEach(t *testing.T) {
	r := newHarness(t)
	f, b := r.of(ofA(1)), r.of(ofB(1))
	r.follow(ofA(1), ofA(2))
	for i, key := range []string{"others", "alone"} {
		require.True(t, must(f.Acquire(bounded(t), asking(key, ofA(3+i))))(t).OK)
	}
	r.subscribe(Inbox("others", clientB))
	must(b.Enter(bounded(t), "others", ofB(1)))(t)
	r.s.Do(t, "SET", "string", "x")

	holds := []FairReleaseRequest{
		fairHold("k", ofA(1), 0), fairHold("string", ofA(9), 0), fairHold("others", ofA(3), 0), fairHold("free", ofA(9), 0), fairHold("alone", ofA(4), 0),
	}
	ended := Result[FairReply]{Value: FairReply{Ours: true}}
	results := make([]Result[FairReply], len(holds))
	require.NoError(t, f.ReleaseEach(bounded(t), holds, results))
	require.Equal(t, map[int]string{1: "WRONGTYPE"}, refusals(t, results))
	require.Equal(t, []Result[FairReply]{{Value: FairReply{Ours: true, Grant: granted(ofA(2))}}, {}, ended, {}, ended}, results)
	r.requireHeld(ofA(2), grantLease)
	require.Len(t, r.messages(), 1)
	require.Zero(t, number(t, r.s, "EXISTS", "alone"))

	for i := range holds {
		holds[i].Doubt, holds[i].Served = true, []string{ofA(8)}
	}
	require.NoError(t, f.ReleaseEach(bounded(t), holds, results)) // again: nobody is served
	require.Equal(t, Result[FairReply]{}, results[0])
	require.True(t, must(f.Acquire(bounded(t), asking("free", ofA(9))))(t).Gone)
	r.requireHeld(ofA(2), grantLease)
	r.requireSaid()
}

// Each owner leaves by itself: one that holds a lock gives it to the next waiter, and what
// arrives later takes nothing.
func TestFairLeaveEach(t *testing.T) {
	r := newHarness(t)
	f := r.of(ofA(1))
	r.follow(ofA(1), ofA(2), ofA(3))
	r.s.Do(t, "SET", "string", "x")
	holds := []LeaveRequest{{"k", []string{ofA(1)}, nil}, {"string", []string{ofA(9)}, nil}, {"free", []string{ofA(4)}, nil}}
	results := make([]Result[FairReply], len(holds))
	for _, grant := range []Grant{granted(ofA(2)), {}} { // again: nobody is served
		require.NoError(t, f.LeaveEach(bounded(t), holds, results))
		require.Equal(t, map[int]string{1: "WRONGTYPE"}, refusals(t, results))
		require.Equal(t, []Result[FairReply]{{Value: FairReply{Ours: true, Grant: grant}}, {}, {Value: FairReply{Ours: true}}}, results)
		for _, i := range []int{0, 2} {
			require.True(t, must(f.Acquire(bounded(t), asking(holds[i].Key, holds[i].InDoubt[0])))(t).Gone)
		}
		r.requireHeld(ofA(2), grantLease)
	}
}
