package fair_test

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
)

// modelSearch goes breadth first through all states that a world can reach, each
// told from the others by 64 bits of hash.
type modelSearch struct {
	world    *modelWorld
	looksFor string // the property whose breaking ends the search; "": any
	most     int    // states; then the search ends incomplete

	seed     maphash.Seed
	seen     map[uint64]struct{}
	parents  []modelParent
	actions  []modelAction         // to be used again
	did      [modelActionKinds]int // times each kind of action was taken
	last     int                   // index of the state in which the property was broken
	broken   string
	step     modelAction    // that broke it
	full     bool           // most was reached
	progress *modelProgress // nil: turns are not looked after
}

// modelParent is how a state was reached.
type modelParent struct {
	from int32
	by   modelAction
}

func newModelSearch(x *modelWorld, looksFor string, most int) *modelSearch {
	for o := modelOwner(1); o <= modelWaiters*modelLives; o++ {
		x.client[o] = max(x.of[x.waiterOf(o)], 0)
	}
	return &modelSearch{world: x, looksFor: looksFor, most: most,
		seed: maphash.MakeSeed(), seen: map[uint64]struct{}{}}
}

func (x *modelWorld) start() modelState {
	s := modelState{faults: x.budget, used: 1}
	s.redis.fence = 1
	return s
}

// modelNode is a state that has still to be searched from.
type modelNode struct {
	state modelState
	index int32
}

// run searches until nothing is left, or a property is broken.
func (s *modelSearch) run() {
	first := s.world.start()
	s.seen[maphash.Comparable(s.seed, first)] = struct{}{}
	s.parents = []modelParent{{from: -1}}
	level, next := []modelNode{{first, 0}}, []modelNode(nil)
	for len(level) > 0 && s.broken == "" && !s.full {
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
func (s *modelSearch) expand(from *modelNode, next []modelNode) []modelNode {
	m := model{modelWorld: s.world, modelState: from.state}
	s.actions = m.actions(s.actions[:0])
	for _, a := range s.actions {
		m.modelState = from.state
		m.do(a)
		s.did[a.kind]++
		h := maphash.Comparable(s.seed, m.modelState)
		_, known := s.seen[h]
		if !known && m.broken == "" && s.progress != nil {
			m.broken = s.progress.check(&m)
		}
		switch {
		case m.broken != "" && (s.looksFor == "" || s.looksFor == m.broken):
			s.last, s.step, s.broken = int(from.index), a, m.broken
			return next
		case known:
			continue
		case len(s.parents) >= s.most:
			s.full = true
			return next
		}
		s.seen[h] = struct{}{}
		s.parents = append(s.parents, modelParent{from.index, a})
		next = append(next, modelNode{m.modelState, int32(len(s.parents) - 1)})
	}
	return next
}

// trace tells how the property was broken.
func (s *modelSearch) trace() string {
	steps := []modelAction{s.step}
	for at := s.last; s.parents[at].from >= 0; at = int(s.parents[at].from) {
		steps = append(steps, s.parents[at].by)
	}
	var b strings.Builder
	m := model{modelWorld: s.world, modelState: s.world.start()}
	for i := len(steps) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%-40s", m.describe(steps[i]))
		m.do(steps[i])
		fmt.Fprintln(&b, m.String())
	}
	fmt.Fprintln(&b, "->", s.broken)
	return b.String()
}

// describe says what an action is about.
func (m *model) describe(a modelAction) string {
	switch a.kind {
	case modelExecute, modelAnswer, modelTimeout:
		return fmt.Sprintf("%v: %v", a, m.calls[a.at])
	}
	return a.String()
}

func (c modelCall) String() string {
	name := [...]string{"", "acquire", "enter", "release", "leave", "confirm", "heartbeat", "renew"}[c.kind]
	text := fmt.Sprintf("%s%v by %d", name, c.owners, c.client)
	if c.attempt > 1 {
		text += " again"
	}
	return text
}

func (s modelState) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "holder %d for %d, queue %v, alive %v |", s.redis.holder, s.redis.left, s.redis.queue[:s.redis.length()], s.redis.alive)
	for _, w := range s.waiters {
		name := [...]string{"idle", "acquiring", "outside", "entering", "waiting", "confirming", "held", "done"}[w.phase]
		fmt.Fprintf(&b, " %d %s", w.owner, name)
		if w.phase == modelHeld {
			fmt.Fprintf(&b, " for %d by %d", w.trust, w.field)
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
	t.Logf("%s: %s, after %d states\n%s", s.world.name, s.broken, len(s.parents), s.trace())
}

// proves runs a search that must find nothing.
func (s *modelSearch) proves(t *testing.T) {
	t.Helper()
	s.run()
	if s.broken != "" {
		t.Fatalf("%s: %s\n%s", s.world.name, s.broken, s.trace())
	}
	kind := "all"
	if s.full {
		kind = "the first"
	}
	t.Logf("%s: %s %d states", s.world.name, kind, len(s.parents))
}
