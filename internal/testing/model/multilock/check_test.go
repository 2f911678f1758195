package multilock_test

// The properties that each state must have.
const (
	modelTwo      = "two believe in their leases"
	modelLeftOver = "something is left of an owner that was ended"
	modelFence    = "a fence number does not grow"
	modelMissing  = "a node that lacks a lease is not asked again"
)

// breaks notes the first property that a step breaks.
func (m *protocol) breaks(what string) {
	if m.broken == "" {
		m.broken = what
	}
}

// check looks at a state.
func (m *protocol) check() {
	believers := 0
	for i := range m.rows {
		row := &m.rows[i]
		if row.phase == modelHeld && row.forced == 0 && row.exposed == 0 {
			believers++
		}
		for n := range m.nodes {
			node := &m.nodes[n]
			cell := &node.cells[i]
			restored := node.kind.replicated > 0 || node.kind.copied > 0
			if row.phase == modelOver && cell.end == 0 && node.holder == modelOwner(i+1) && !restored {
				m.breaks(modelLeftOver)
			}
			if row.phase == modelHeld && n < int(m.size(m.of[i])) && cell.there == modelAbsent && cell.ask == modelNoAsk {
				m.breaks(modelMissing)
			}
		}
	}
	if believers > 1 {
		m.broken = modelTwo
	}
}

// exposes notes the owners without promises as the clock of a node jumps: those that have
// the lock there, or had it before the node restarted, while a node with a right clock lacks
// it, or has it for less time than it will be believed in. Missing nodes and wrong clocks
// share a budget of one.
func (m *protocol) exposes(n int) {
	if m.exact {
		return
	}
	for i := range m.rows {
		o, row, cell := modelOwner(i+1), &m.rows[i], &m.nodes[n].cells[i]
		had := m.nodes[n].wait > 0 && (cell.there == modelPresent || cell.doubt > 0 || cell.ask >= modelAsked)
		if row.phase == modelIdle || row.phase == modelOver || m.nodes[n].holder != o && !had {
			continue
		}
		trust := row.trust
		if cell.renew == modelRenewYes || cell.renew == modelRenewed {
			trust = m.believed(i) - row.since
		}
		for j := range m.size(m.of[i]) {
			if node := &m.nodes[j]; node.kind.wrong == 0 && (node.holder != o || node.left < trust) {
				row.exposed = 1
			}
		}
	}
}

// checkFence looks at the number of a lease that is handed out.
func (m *protocol) checkFence(row *modelRow) {
	if row.fence <= m.used && row.forced == 0 && row.exposed == 0 {
		m.breaks(modelFence)
	}
	m.used = max(m.used, row.fence)
}
