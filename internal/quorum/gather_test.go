package quorum

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

type acquires = gathering[ballotKind, scripts.Ask, scripts.Ballot]

func join(n *node, vote *scripts.Vote, h *hold, f *scripts.Fencing) (*acquires, int) {
	return n.asks.join(ballotOf(vote, f), scripts.Ask{Key: h.key, Owner: h.owner, Lease: h.lease}, n.hurries(h))
}

// Acquires of one kind share a call, and each gets its own answer.
func TestGather(t *testing.T) {
	c := newRipeRig(t, 1).client()
	n := c.nodes[0]
	vote, err := n.voting(bounded(t))
	require.NoError(t, err)
	var calls atomic.Int64
	c.ways[0].OnRequest(func([]string) redistest.Verdict {
		calls.Add(1)
		return redistest.Pass
	})

	other := c.newHold("held", "other", lease)
	g, place := join(n, vote, other, nil)
	require.Zero(t, place)
	n.asks.send(bounded(t), g)
	require.True(t, g.answers[0].OK)

	for _, f := range []*scripts.Fencing{nil, {Reserve: 1, Expiry: time.Hour}} {
		g, place = join(n, vote, c.newHold("free", fmt.Sprint("me", f), lease), f)
		require.Zero(t, place)
		if f != nil {
			same := *f
			f = &same
		}
		same, place := join(n, vote, c.newHold("held", "me", lease), f)
		require.Equal(t, 1, place)
		require.Same(t, g, same)
		before := calls.Load()
		n.asks.send(bounded(t), g)
		require.Equal(t, before+1, calls.Load())
		require.Equal(t, f == nil, g.answers[0].OK) // else held by the first
		require.Equal(t, "other", g.answers[1].Holder)
	}
}

// Who joins a call gets its own answer, and waits for it no longer than it may.
func TestGather_OwnAnswer(t *testing.T) {
	c := newRipeRig(t, 1).client()
	n := c.nodes[0]
	vote, err := n.voting(bounded(t))
	require.NoError(t, err)
	g, _ := join(n, vote, c.newHold("held", "other", lease), nil)
	n.asks.send(bounded(t), g)
	g, _ = join(n, vote, c.newHold("free", "me", lease), nil)
	type answer struct {
		b   scripts.Ballot
		err error
	}
	came := make(chan answer, 1)
	go func() {
		b, err := n.ballot(bounded(t), vote, c.newHold("held", "me", lease), nil)
		came <- answer{b, err}
	}()
	until(t, func() bool { return n.asks.together(g) == 2 })
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = n.ballot(over, vote, c.newHold("late", "me", lease), nil)
	require.ErrorIs(t, err, errSilent)
	n.asks.send(bounded(t), g)
	a := <-came
	require.NoError(t, a.err)
	require.False(t, a.b.OK)
	require.Equal(t, "other", a.b.Holder)
}

// What differs in kind goes out by itself: other votes, other terms, a lease that
// does not let it wait as long; and what comes after a call was made or is full.
func TestGather_Apart(t *testing.T) {
	c := newRipeRig(t, 1).client()
	n := c.nodes[0]
	vote, err := n.voting(bounded(t))
	require.NoError(t, err)
	h := c.newHold("k", "me", lease)
	f := &scripts.Fencing{Reserve: 1, Expiry: time.Hour}
	first := func(vote *scripts.Vote, h *hold, f *scripts.Fencing) *acquires {
		t.Helper()
		g, place := join(n, vote, h, f)
		require.Zero(t, place)
		return g
	}
	first(vote, h, nil)
	again := *vote
	first(&again, h, nil)
	first(&again, h, f)
	first(&again, h, &scripts.Fencing{Reserve: 2, Expiry: time.Hour})
	first(&again, h, nil)
	first(&again, c.newHold("k", "me", 9*c.NodeTimeout), nil)
	first(&again, h, f)
	for i := 1; i < mostTogether; i++ {
		_, place := join(n, &again, h, f)
		require.Equal(t, i, place)
	}
	g := first(&again, h, f)
	n.asks.send(bounded(t), g)
	first(&again, h, f)
}

// That the time of the one who sends is over is no refusal of the others.
func TestGather_TooLate(t *testing.T) {
	c := newRipeRig(t, 1).client()
	n := c.nodes[0]
	vote, err := n.voting(bounded(t))
	require.NoError(t, err)
	g, _ := join(n, vote, c.newHold("k", "me", lease), nil)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	n.asks.send(over, g)
	require.Equal(t, scripts.Unknown, scripts.OutcomeOf(g.err))
}

// A reply with fewer or more answers than asks is none: nobody can tell whose they
// are, and none that is missing may pass for one.
func TestGather_AsManyAnswersAsAsks(t *testing.T) {
	c := newRipeRig(t, 1).client()
	n := c.nodes[0]
	vote, err := n.voting(bounded(t))
	require.NoError(t, err)
	asks := []scripts.Ask{{Key: "a", Owner: "me", Lease: lease}, {Key: "b", Owner: "me", Lease: lease}}
	for _, places := range []int{1, 3} {
		ballots := make([]scripts.Ballot, places)
		err = n.script.AcquireVoted(bounded(t), vote, nil, asks, ballots)
		require.Equal(t, scripts.Unknown, scripts.OutcomeOf(err), "%v", err)
		require.Equal(t, make([]scripts.Ballot, places), ballots)
	}
	require.NoError(t, n.script.AcquireVoted(bounded(t), vote, nil, asks, make([]scripts.Ballot, 2)))
}

// Whoever shares a call with one that Redis forbids, or whose sender was paused until
// its time was over, is asked for by itself.
func TestGather_FaultsOfOthers(t *testing.T) {
	r := newRipeRig(t, 1)
	c := r.client()
	n := c.nodes[0]
	vote, err := n.voting(bounded(t))
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, f := range map[string]struct {
		ctx    context.Context
		prefix string
	}{"forbidden": {bounded(t), "foreign"}, "paused": {over, "key"}} {
		r.do(0, "ACL", "SETUSER", "default", "resetkeys", "~key*", "~holdfast*")
		first, _ := join(n, vote, c.newHold(f.prefix+"1", "me", lease), nil)
		got := make(chan error, 1)
		h := c.newHold("key "+name, "me", lease)
		go func() {
			b, err := n.ballot(bounded(t), vote, h, nil)
			if err == nil && !b.OK {
				err = ErrHeld
			}
			got <- err
		}()
		until(t, func() bool { return n.asks.together(first) == 2 })
		n.asks.send(f.ctx, first)
		require.Error(t, first.err)
		require.NoError(t, <-got, name)

		last, _ := n.ends.join(struct{}{}, scripts.Hold{Key: f.prefix + "1", Owner: "me"}, false)
		go func() {
			said, err := n.free(bounded(t), h)
			if err == nil && !said.Ours {
				err = ErrHeld
			}
			got <- err
		}()
		until(t, func() bool { return n.ends.together(last) == 2 })
		n.ends.send(f.ctx, last)
		require.Error(t, last.err)
		require.NoError(t, <-got, name)
	}
	r.do(0, "ACL", "SETUSER", "default", "allkeys")
}

// together is how many share a call so far.
func (g *gatherer[K, Q, A]) together(c *gathering[K, Q, A]) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(c.asks)
}

// Releases share a call, too, and each gets its own answer: released, nothing to
// release, refused.
func TestGather_Releases(t *testing.T) {
	r := newRipeRig(t, 1)
	c := r.client()
	n := c.nodes[0]
	vote, err := n.voting(bounded(t))
	require.NoError(t, err)
	held, free, wrong := c.newHold("held", "me", lease), c.newHold("free", "me", lease), c.newHold("wrong", "me", lease)
	for _, h := range []*hold{held, wrong} {
		b, err := n.ballot(bounded(t), vote, h, nil)
		require.NoError(t, err)
		require.True(t, b.OK)
	}
	r.do(0, "SET", "wrong", "a string")
	var calls atomic.Int64
	c.ways[0].OnRequest(func([]string) redistest.Verdict {
		calls.Add(1)
		return redistest.Pass
	})
	first, place := n.ends.join(struct{}{}, scripts.Hold{Key: "other", Owner: "me"}, false)
	require.Zero(t, place)
	errs := map[*hold]chan error{}
	for i, h := range []*hold{held, free, wrong} {
		h.parts[0] = part{asked: true, there: true, sure: true}
		came := make(chan error, 1)
		errs[h] = came
		go func() { came <- n.release(h, 0) }()
		until(t, func() bool { return n.ends.together(first) == i+2 })
	}
	said, err := n.free(bounded(t), c.newHold("held", "other", 9*c.NodeTimeout))
	require.NoError(t, err)
	require.False(t, said.Ours, "it waits for nobody")

	before := calls.Load()
	n.ends.send(bounded(t), first)
	require.NoError(t, <-errs[held])
	require.NoError(t, <-errs[free])
	require.Equal(t, scripts.Refused, scripts.OutcomeOf(<-errs[wrong]))
	require.LessOrEqual(t, calls.Load(), before+2, "one, and the script's text")
	for h, want := range map[*hold][2]int{held: {1, 0}, free: {0, 1}, wrong: {0, 0}} {
		require.Equal(t, want, [2]int{h.released, h.notOurs}, h.key)
	}
}
