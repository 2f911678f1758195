package multilock_test

import (
	"fmt"
	"strings"
	"testing"
)

// modelSearch goes breadth first through all states that a world can reach, each
// told from the others by 128 bits of hash.
type modelSearch struct {
	world    *modelWorld
	looksFor string // the property whose breaking ends the search; "": any
	most     int    // states; then the search ends incomplete

	hasher  *modelHasher
	seen    map[modelHash]struct{}
	parents []modelParent
	actions []modelAction         // to be used again
	did     [modelActionKinds]int // times each kind of action was taken
	met     uint32
	last    int // index of the state in which the property was broken
	broken  string
	step    modelAction // that broke it
	full    bool        // most was reached
}

// modelParent is how a state was reached.
type modelParent struct {
	from int32
	by   modelAction
}

func newModelSearch(x *modelWorld, looksFor string, most int) *modelSearch {
	return &modelSearch{world: x, looksFor: looksFor, most: most,
		hasher: newModelHasher(x), seen: map[modelHash]struct{}{}}
}

// modelReached is a state that has still to be searched from.
type modelReached struct {
	state modelState
	index int32
}

// run searches until nothing is left, or a property is broken.
func (s *modelSearch) run() {
	first := s.world.start()
	s.seen[s.hasher.hash(&first)] = struct{}{}
	s.parents = []modelParent{{from: -1}}
	level, next := []modelReached{{first, 0}}, []modelReached(nil)
	for len(level) > 0 {
		next = next[:0]
		for i := range level {
			if next = s.expand(&level[i], next); s.broken != "" || s.full {
				return
			}
		}
		level, next = next, level
	}
}

// expand appends the states after one to next that have not been seen before.
func (s *modelSearch) expand(from *modelReached, next []modelReached) []modelReached {
	m := model{modelWorld: s.world, modelState: from.state}
	s.actions = m.actions(s.actions[:0])
	for _, a := range s.actions {
		m.modelState = from.state
		m.do(a)
		s.did[a.kind]++
		s.met |= m.met
		if m.broken != "" && (s.looksFor == "" || s.looksFor == m.broken) {
			s.last, s.step, s.broken = int(from.index), a, m.broken
			return next
		}
		h := s.hasher.hash(&m.modelState)
		if _, known := s.seen[h]; known {
			continue
		}
		if len(s.parents) >= s.most {
			s.full = true
			return next
		}
		s.seen[h] = struct{}{}
		s.parents = append(s.parents, modelParent{from.index, a})
		next = append(next, modelReached{m.modelState, int32(len(s.parents) - 1)})
	}
	return next
}

// trace tells how the property was broken, and in how many steps.
func (s *modelSearch) trace() (steps int, text string) {
	all := []modelAction{s.step}
	for at := s.last; s.parents[at].from >= 0; at = int(s.parents[at].from) {
		all = append(all, s.parents[at].by)
	}
	var b strings.Builder
	m := model{modelWorld: s.world, modelState: s.world.start()}
	for i := len(all) - 1; i >= 0; i-- {
		m.do(all[i])
		fmt.Fprintf(&b, "%-32v%v\n", all[i], m.modelState)
	}
	fmt.Fprintln(&b, "->", s.broken)
	return len(all), b.String()
}

func (s modelState) String() string {
	var b strings.Builder
	for i, row := range s.rows {
		if row.phase != modelIdle {
			name := [...]string{"", "asks", "fences", "holds", "over"}[row.phase]
			fmt.Fprintf(&b, "%d %s(age %d, trust %d) ", i, name, row.age, row.trust)
		}
	}
	for _, n := range s.nodes {
		fmt.Fprintf(&b, "| held by %d for %d", n.holder-1, n.left)
		if n.own == 0 || n.wait > 0 {
			fmt.Fprintf(&b, ", no vote (marker %d, own %d, %d left)", n.marker, n.own, n.wait)
		}
		if n.fence != 0 {
			fmt.Fprintf(&b, ", fence %d", n.fence)
		}
	}
	return b.String()
}

// found runs a search that has to find a broken property.
func (s *modelSearch) found(t *testing.T) {
	t.Helper()
	s.run()
	if s.broken == "" {
		t.Fatalf("%s: not found in %d states", s.world.name, len(s.parents))
	}
	steps, trace := s.trace()
	t.Logf("%s: %s, in %d steps, after %d states\n%s", s.world.name, s.broken, steps, len(s.parents), trace)
}

// proves runs a search that must find nothing.
func (s *modelSearch) proves(t *testing.T) {
	t.Helper()
	s.run()
	if s.broken != "" {
		_, trace := s.trace()
		t.Fatalf("%s: %s\n%s", s.world.name, s.broken, trace)
	}
	kind := "all"
	if s.full {
		kind = "the first"
	}
	t.Logf("%s: %s %d states", s.world.name, kind, len(s.parents))
}
