package quorum

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// The model of fence numbers: all states of three nodes, with numbers from real rounds.
// Locks follow one another. Each round reaches any nodes, and writes its number back to any
// of them. Each node may forget at any time, and then has no vote for a longest lease. Node
// 2 shows any clock in each round. The clocks of the other two differ by at most a third of
// the longest lease.
//
// Not in it: two concurrent rounds (multilock's model has them), and clocks that drift.

// fenceWorld is what stays the same.
type fenceWorld struct {
	skew   int64 // how far clocks may differ that make a number
	spread int8  // by which node 1's clock is ahead of node 0's
	early  bool  // node 2's clock also ends its time without a vote, as soon as it has forgotten
}

// fenceLongest is the longest lease, in ticks. Each round takes a tick.
const fenceLongest = 6

// fenceState is relative to node 0's clock. Numbers below 0 are all -1, as no round makes
// one that small.
type fenceState struct {
	counters, waits [3]int8
	used            int8
}

// tick returns the state one tick later.
func (s fenceState) tick() fenceState {
	for n := range s.counters {
		s.counters[n], s.waits[n] = max(s.counters[n]-1, -1), max(s.waits[n]-1, 0)
	}
	s.used = max(s.used-1, -1)
	return s
}

// clocks are the clocks that node 2 may show.
var clocks = []int8{-100, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 100}

// round returns the states after a round that reaches a set of nodes; false if its number
// does not grow.
func (s fenceState) round(w fenceWorld, q *Quorum, reached int, wrong int8) (after []fenceState, grows bool) {
	const now = 1000
	r := &round{q: q, hold: &hold{AcquireRequest: wire.AcquireRequest{Fencing: wire.Fencing{Reserve: 1}}}, replies: make([]wire.NodeReply, 3), errs: make([]error, 3)}
	for n, clock := range [3]int8{0, w.spread, wrong} {
		if reached&(1<<n) == 0 || s.waits[n] > 0 {
			r.errs[n] = errVoid
			continue
		}
		r.yes++
		r.replies[n] = wire.NodeReply{FenceSource: wire.FenceSource{Clock: now + int64(clock), Counter: now + int64(s.counters[n])}}
	}
	if r.yes < q.need {
		return nil, true
	}
	first, last, agreed := r.mint()
	if !agreed {
		return nil, true
	}
	number := int8(last - now)
	for wrote := range 1 << 3 {
		next, done := s, 0
		for n := range next.counters {
			if wrote&(1<<n) != 0 && r.errs[n] == nil {
				next.counters[n] = max(next.counters[n], number)
				done++
			}
		}
		if done >= q.need {
			next.used = number
		}
		after = append(after, next.tick())
	}
	return after, first-now > int64(s.used)
}

// explore visits all states, and returns how many there are and whether all numbers grow.
func (w fenceWorld) explore() (states int, grow bool) {
	q := New(nil, Config{
		Settings: holdfast.Settings{Fencing: true, Logger: slog.New(slog.DiscardHandler)}, MaxLease: time.Duration(2*w.skew) * time.Microsecond,
	})
	q.quorum, q.need = 2, 2
	for i := range 3 {
		q.nodes = append(q.nodes, &node{q: q, index: i})
	}
	first := fenceState{counters: [3]int8{-1, -1, -1}, used: -1}
	seen, todo := map[fenceState]bool{first: true}, []fenceState{first}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		next := []fenceState{s.tick()}
		for n := range s.counters {
			f := s
			f.counters[n], f.waits[n] = -1, fenceLongest
			if n == 2 && w.early {
				f.waits[n] = 0
			}
			next = append(next, f)
		}
		for reached := range 1 << 3 {
			for _, wrong := range clocks {
				after, grows := s.round(w, q, reached, wrong)
				if !grows {
					return len(seen), false
				}
				next = append(next, after...)
			}
		}
		todo = todo[:len(todo)-1]
		for _, n := range next {
			if !seen[n] {
				seen[n] = true
				todo = append(todo, n)
			}
		}
	}
	return len(seen), true
}

// Numbers grow whatever one clock shows and whichever node forgets.
func TestG10_F34_FenceModel(t *testing.T) {
	for spread := range int8(fenceLongest/3 + 1) {
		states, grow := fenceWorld{skew: fenceLongest / 2, spread: spread}.explore()
		require.True(t, grow)
		require.Greater(t, states, 1000)
		t.Logf("true clocks %d apart: %d states", spread, states)
	}
	for name, w := range map[string]fenceWorld{ // a tick more than is too much, as a round takes one
		"any clock makes a number":                    {skew: 1000},
		"clocks that make one differ by over half":    {skew: fenceLongest/2 + 2, spread: fenceLongest / 3},
		"true clocks differ by over a third":          {skew: fenceLongest / 2, spread: fenceLongest/3 + 2},
		"a node that forgets votes at once, see docs": {skew: fenceLongest / 2, spread: 1, early: true},
	} {
		_, grow := w.explore()
		require.False(t, grow, name)
	}
}
