// Package model searches the states that a protocol can reach. Tests only: each folder has
// one protocol, as clients, servers and faults in its test files.
package model

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Long asks for the long search: larger worlds, more states.
var Long = os.Getenv("MODEL") == "long"

// Protocol is a protocol in one of its states S; A is a step.
type Protocol[S, A any] interface {
	State() *S              // the search sets it
	Hash() uint64           // of the state
	Actions(to []A) []A     // appends the possible next steps
	Do(step A) string       // takes a step, and returns the property that it breaks, or ""
	Check() string          // as Do, for a new state
	Describe(step A) string // before the step is taken
	String() string         // of the state
}

// Search visits all states, breadth first.
type Search[S, A any] struct {
	Protocol[S, A]
	Name     string
	LooksFor string // the broken property that ends the search; "": any
	Most     int    // states; then the search ends incomplete

	first    S
	seen     map[uint64]struct{}
	parents  []parent[A]
	actions  []A // kept for reuse
	last     int // index of the state before the step that broke the property
	broken   string
	breaking A
	full     bool // Most was reached
}

// parent is how a state was reached.
type parent[A any] struct {
	from int32
	by   A
}

// reached is a state to be searched from.
type reached[S any] struct {
	state S
	index int32
}

// States is the number of states reached.
func (s *Search[S, A]) States() int { return len(s.parents) }

// run searches until no state is left, or a property is broken.
func (s *Search[S, A]) run() {
	s.first = *s.State()
	s.seen = map[uint64]struct{}{s.Hash(): {}}
	s.parents = []parent[A]{{from: -1}}
	level, next := []reached[S]{{s.first, 0}}, []reached[S](nil)
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

// expand appends the new states after one to next.
func (s *Search[S, A]) expand(from *reached[S], next []reached[S]) []reached[S] {
	state := s.State()
	*state = from.state
	s.actions = s.Actions(s.actions[:0])
	for _, step := range s.actions {
		*state = from.state
		broken := s.Do(step)
		h := s.Hash()
		_, known := s.seen[h]
		if !known && broken == "" {
			broken = s.Check()
		}
		switch {
		case broken != "" && (s.LooksFor == "" || s.LooksFor == broken):
			s.last, s.breaking, s.broken = int(from.index), step, broken
			return next
		case known:
			continue
		case len(s.parents) >= s.Most:
			s.full = true
			return next
		}
		s.seen[h] = struct{}{}
		s.parents = append(s.parents, parent[A]{from.index, step})
		next = append(next, reached[S]{*state, int32(len(s.parents) - 1)})
	}
	return next
}

// trace lists the steps that broke the property.
func (s *Search[S, A]) trace() string {
	steps := []A{s.breaking}
	for at := s.last; s.parents[at].from >= 0; at = int(s.parents[at].from) {
		steps = append(steps, s.parents[at].by)
	}
	var b strings.Builder
	*s.State() = s.first
	for i := len(steps) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%-40s", s.Describe(steps[i]))
		s.Do(steps[i])
		fmt.Fprintln(&b, s)
	}
	return fmt.Sprintf("%s, in %d steps, after %d states\n%s", s.broken, len(steps), len(s.parents), b.String())
}

// Finds runs a search that must find a broken property.
func (s *Search[S, A]) Finds(t *testing.T) {
	t.Helper()
	s.run()
	if s.broken == "" {
		t.Fatalf("%s: not found in %d states", s.Name, len(s.parents))
	}
	t.Logf("%s: %s", s.Name, s.trace())
}

// Proves runs a search that must find nothing.
func (s *Search[S, A]) Proves(t *testing.T) {
	t.Helper()
	s.run()
	if s.broken != "" {
		t.Fatalf("%s: %s", s.Name, s.trace())
	}
	kind := "all"
	if s.full {
		kind = "the first"
	}
	t.Logf("%s: %s %d states", s.Name, kind, len(s.parents))
}
