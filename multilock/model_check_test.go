package multilock_test

// The properties that each state must have.
const (
	modelTwo      = "two believe in their leases"
	modelLeftOver = "something is left of an owner that was ended"
	modelFence    = "a fence number does not grow"
)

// breaks notes the first property that a step breaks.
func (m *model) breaks(what string) {
	if m.broken == "" {
		m.broken = what
	}
}

// check looks at a state.
func (m *model) check() {
	believers := 0
	for i := range m.rows {
		if m.rows[i].phase == modelHeld {
			believers++
		}
		for n := range m.nodes {
			node := &m.nodes[n]
			if m.rows[i].phase == modelHeld && node.holder == 0 && node.own > 0 && node.wait == 0 && node.kind.wrong == 0 {
				m.beside = m.beside || m.wrong() // as in excuse
			}
			restored := node.kind.replicated > 0 || node.kind.copied > 0
			if m.rows[i].phase == modelOver && node.cells[i].end == 0 && node.holder == modelOwner(i+1) && !restored {
				m.breaks(modelLeftOver)
			}
		}
	}
	if believers > 1 && !m.beside {
		m.broken = modelTwo
	}
	if m.beside {
		m.broken = ""
	}
}

// excuse is called when a lease is won. Nothing is promised for one that a node with
// a right clock has not given while the clock of another is wrong, nor for what comes
// of it: these share a budget of one.
func (m *model) excuse(i int) {
	for n := range m.nodes {
		if m.nodes[n].cells[i].said != modelSaidYes && m.nodes[n].kind.wrong == 0 && m.wrong() {
			m.beside = true
		}
	}
}

// wrong says whether some node's clock is wrong.
func (m *model) wrong() bool {
	for n := range m.nodes {
		if m.nodes[n].kind.wrong > 0 {
			return true
		}
	}
	return false
}

func (m *model) checkFence(fence int8) {
	if fence <= m.used {
		m.breaks(modelFence)
	}
	m.used = max(m.used, fence)
}
