package multilock_test

import (
	"hash/maphash"
	"slices"
)

// modelHasher hashes the states of a world. States have the same hash that differ only in
// which nodes, or which clients, are which.
type modelHasher struct {
	seed   maphash.Seed
	orders [][modelOwners]modelOwner // of the owners, that change clients only
	of     [modelOwners]int8
}

func newModelHasher(x *modelWorld) *modelHasher {
	h := &modelHasher{seed: maphash.MakeSeed(), of: x.of}
	for _, clients := range [][modelClients]int8{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		if order, ok := x.order(clients); ok {
			h.orders = append(h.orders, order)
		}
	}
	return h
}

// order is what becomes of the owners when the clients are swapped; ok is false if
// the clients are not alike.
func (x *modelWorld) order(clients [modelClients]int8) (to [modelOwners]modelOwner, ok bool) {
	var nth [modelClients]int
	for i, c := range x.of {
		if c == modelNobody {
			to[i] = modelOwner(i)
			continue
		}
		if x.most[c] != x.most[clients[c]] || x.nodes[c] != x.nodes[clients[c]] || x.clocks[c] != x.clocks[clients[c]] {
			return to, false
		}
		seen, found := 0, false
		for j, other := range x.of {
			if other == clients[c] {
				if seen == nth[c] && x.fixed[i] == x.fixed[j] {
					to[i], found = modelOwner(j), true
				}
				seen++
			}
		}
		nth[c]++
		if !found {
			return to, false
		}
	}
	return to, slices.Max(clients[:x.clients()]) < int8(x.clients())
}

// modelSummary is a state whose nodes are hashed.
type modelSummary struct {
	nodes  [modelNodes]uint64
	rows   [modelOwners]modelRow
	boots  [modelClients]int8
	budget modelBudget
	used   int8
}

// hash is the smallest of those of all the orders.
func (h *modelHasher) hash(s *modelState) uint64 {
	least := h.one(s) // the first order changes nothing
	for _, order := range h.orders[1:] {
		swapped := h.swap(s, order)
		least = min(least, h.one(&swapped))
	}
	return least
}

func (h *modelHasher) one(s *modelState) uint64 {
	sum := modelSummary{rows: s.rows, boots: s.boots, budget: s.budget, used: s.used}
	for n := range s.nodes {
		sum.nodes[n] = maphash.Comparable(h.seed, s.nodes[n])
	}
	slices.Sort(sum.nodes[:])
	return maphash.Comparable(h.seed, sum)
}

// swap is the state with other owners in the owners' places.
func (h *modelHasher) swap(s *modelState, to [modelOwners]modelOwner) modelState {
	t := *s
	owner := func(o modelOwner) modelOwner {
		if o == 0 {
			return 0
		}
		return to[o-1] + 1
	}
	for i := range to {
		t.rows[to[i]] = s.rows[i]
		if c := h.of[i]; c != modelNobody {
			t.boots[h.of[to[i]]] = s.boots[c]
		}
	}
	for n := range s.nodes {
		from, node := &s.nodes[n], &t.nodes[n]
		for i := range to {
			node.cells[to[i]] = from.cells[i]
			if c := h.of[i]; c != modelNobody {
				node.votes[h.of[to[i]]] = from.votes[c]
				if node.seen &^= 1 << h.of[to[i]]; from.seen&(1<<c) != 0 {
					node.seen |= 1 << h.of[to[i]]
				}
			}
		}
		for _, d := range []*modelData{&node.modelData, &node.replica} {
			stones := uint8(0)
			for o := modelOwner(1); o <= modelOwners; o++ {
				if d.stones&o.bit() != 0 {
					stones |= owner(o).bit()
				}
			}
			d.holder, d.stones = owner(d.holder), stones
		}
	}
	return t
}

// tidy makes states equal that differ in nothing that matters.
func (m *protocol) tidy() {
	arriving := uint8(0) // owners of which an acquire may still arrive
	for n := range m.nodes {
		node := &m.nodes[n]
		for i := range node.cells {
			cell := &node.cells[i]
			if !m.mistakes.existence && !m.mistakes.evalFallback && !m.mistakes.noReplID {
				valid := func(text modelMarker) bool { return node.own > 0 && text&^modelPlain == node.marker }
				for j, text := range cell.late { // takes nothing any more
					if !valid(text) {
						cell.late[j] = 0
					}
				}
				if cell.ask == modelAsked && !valid(cell.text) {
					cell.text = modelVoid
				}
			}
			if cell.late[0] > cell.late[1] {
				cell.late[0], cell.late[1] = cell.late[1], cell.late[0]
			}
			if cell.ask == modelAsked || cell.late != [2]modelMarker{} {
				arriving |= modelOwner(i + 1).bit()
			}
		}
	}
	for n := range m.nodes {
		node := &m.nodes[n]
		node.stones &= arriving
		node.replica.stones &= arriving
	}
	for i := range m.rows {
		if m.rows[i].phase == modelOver {
			m.tidyOver(i)
		}
	}
}

// tidyOver does so for an owner that is over. Nothing makes a difference on a node
// that it is not on, and does not come to.
func (m *protocol) tidyOver(i int) {
	var on [modelNodes]bool
	anywhere := false
	for n := range m.nodes {
		node, o := &m.nodes[n], modelOwner(i+1)
		on[n] = node.holder == o || node.replica.holder == o || node.cells[i].ask == modelAsked || node.cells[i].late != [2]modelMarker{}
		anywhere = anywhere || on[n]
	}
	numbered := false
	for n := range m.nodes {
		cell := &m.nodes[n].cells[i]
		if !on[n] && !(anywhere && m.nodes[n].kind.copied > 0) {
			*cell = modelCell{ask: cell.ask}
		}
		if cell.end == 0 {
			cell.there, cell.gave = modelAbsent, 0
		}
		numbered = numbered || cell.wrote > 0 || cell.end == 2
	}
	if !numbered {
		m.rows[i].fence = 0
	}
}
