package multilock_test

// renew begins a renewal on all nodes.
func (m *protocol) renew(i int) {
	m.rows[i].renewing, m.rows[i].since = 1, 0
	for n := range m.size(m.of[i]) {
		m.nodes[n].cells[i].renew = modelRenewSent
	}
}

// renewOn is a renewal that reaches its node. What is no yes that counts is told at
// once, but in a rough world.
func (m *protocol) renewOn(n, i int) {
	cell := &m.nodes[n].cells[i]
	ours, counts := m.renewed(n, i)
	switch {
	case !ours:
		if cell.renew = modelDenying; !m.rough {
			m.renewAnswered(n, i)
		}
	case counts:
		cell.renew = modelRenewYes
	default:
		cell.renew = modelRenewVoid
		m.decide(i)
	}
}

// renewed is the call, and whether its yes counts.
func (m *protocol) renewed(n, i int) (ours, counts bool) {
	node, c := &m.nodes[n], m.of[i]
	ours = node.renew(&m.modelRules, modelOwner(i+1))
	counts = node.votes[c] != 0 && node.votes[c] == node.marker
	if !counts {
		node.votes[c] = 0
	}
	if ours && !counts {
		m.meet(modelVoidYes)
	}
	return ours, counts || m.mistakes.voidCounts
}

// renewAnswered is a node's answer that reaches its client.
func (m *protocol) renewAnswered(n, i int) {
	cell := &m.nodes[n].cells[i]
	if cell.renew == modelRenewYes {
		cell.renew = modelRenewed
	} else {
		cell.renew = modelDenied
		m.lacks(cell)
	}
	m.decide(i)
}

// renewUnanswered is the end of a client's patience with a renewal on a node.
func (m *protocol) renewUnanswered(n, i int) {
	cell := &m.nodes[n].cells[i]
	if cell.renew == modelRenewSent {
		cell.slow = 1
	}
	cell.renew = modelRenewVoid
	m.decide(i)
}

// renewLate is a renewal that reaches its node after its batch was decided. Its no
// is still heard.
func (m *protocol) renewLate(n, i int) {
	cell := &m.nodes[n].cells[i]
	cell.slow = 0
	if m.rows[i].phase != modelHeld {
		m.nodes[n].renew(&m.modelRules, modelOwner(i+1))
		return
	}
	if ours, counts := m.renewed(n, i); !ours {
		m.lacks(cell)
		if counts {
			m.repair(n, i)
		}
	}
}

// lacks notes that a node has denied a hold. It may have been added since, so the
// node has to be told of its end.
func (m *protocol) lacks(cell *modelCell) {
	cell.there = modelUnsure
	if m.mistakes.deniedForgotten {
		cell.there = modelAbsent
	}
}

// repair has the repairer add a hold on a node.
func (m *protocol) repair(n, i int) {
	if cell := &m.nodes[n].cells[i]; cell.ask == modelNoAsk {
		m.keep(cell)
		m.meet(modelRepair)
	}
}

// decide ends a renewal as soon as it is decided, or all nodes have answered.
func (m *protocol) decide(i int) {
	row := &m.rows[i]
	if row.renewing == 0 {
		return
	}
	yes, no, pending := 0, 0, 0
	for n := range m.nodes {
		switch m.nodes[n].cells[i].renew {
		case modelRenewed:
			yes++
		case modelDenied:
			no++
		case modelRenewSent, modelRenewYes, modelDenying:
			pending++
		}
	}
	quorum, need := m.quorum(m.of[i]), m.need(m.of[i])
	if m.mistakes.quorumRenews {
		need = quorum
	}
	switch {
	case yes >= need:
		trust := m.believed(i) - row.since
		if m.mistakes.unlimited {
			trust = m.believed(i)
		}
		row.trust = max(row.trust, trust)
	case no > int(m.size(m.of[i]))-quorum:
		m.over(i, 1)
		return
	case pending > 0:
		return
	}
	row.renewing, row.since = 0, 0
	for n := range m.nodes {
		cell := &m.nodes[n].cells[i]
		if cell.renew == modelRenewSent && m.rough {
			cell.slow = 1
		}
		if cell.renew == modelDenying {
			m.lacks(cell)
		}
		cell.renew = modelNoRenew
		if yes >= quorum && no > 0 && cell.there != modelPresent {
			m.repair(n, i)
		}
	}
}
