package multilock_test

// modelMeeting is something that a search should have met with at least once.
type modelMeeting int8

// The first are those of modelSays, of an acquire that is waited for.
const (
	modelLateYes modelMeeting = 4 + iota // the first of four of a late acquire
	_
	_
	_
	modelVoidYes // a renewal's yes that does not count
	modelRepair  // a hold is added
)

func (m *protocol) meet(what modelMeeting) { m.meets |= 1 << what }

// do takes one step.
func (m *protocol) do(a modelAction) {
	m.broken, m.meets = "", 0
	n, i := int(a.node), int(a.at)
	node := &m.nodes[n]
	switch a.kind {
	case modelTick:
		m.tick()
	case modelLock:
		m.lock(i)
	case modelUnlock:
		m.over(i, 2)
	case modelCutShort:
		spend(&m.budget.losses)
		m.over(i, 1)
	case modelLook:
		m.look(n, a.at)
	case modelStranger:
		node.look(&m.modelRules, m.marking(n, a.at), a.at)
	case modelAskNow:
		m.ask(n, i)
	case modelArrive:
		m.arrive(n, i)
	case modelArriveLate:
		m.arriveLate(n, i%modelOwners, i/modelOwners)
	case modelAnswer:
		m.answered(n, i)
	case modelTimeout:
		spend(&m.budget.losses)
		m.unanswered(n, i)
	case modelWrite:
		m.write(n, i)
	case modelWriteLost:
		spend(&m.budget.losses)
		m.writeLost(n, i)
	case modelWriteLate:
		node.cells[i].wrote = 0
		node.writeFence(&m.modelRules, modelOwner(i+1), m.rows[i].fence)
	case modelEnd:
		m.end(n, i)
		node.cells[i].end, node.cells[i].there, node.cells[i].doubt = 0, modelAbsent, 0
	case modelEndAgain:
		spend(&m.budget.losses)
		m.end(n, i)
		node.cells[i].end = 1
	case modelForce:
		spend(&m.budget.forces)
		for n := range m.nodes {
			m.nodes[n].force = 1
		}
	case modelForced:
		m.forced(n)
	case modelRenewNow:
		m.renew(i)
	case modelRenewArrive:
		m.renewOn(n, i)
	case modelRenewAnswer:
		m.renewAnswered(n, i)
	case modelRenewLost:
		spend(&m.budget.losses)
		m.renewUnanswered(n, i)
	case modelRenewLate:
		m.renewLate(n, i)
	case modelBoot:
		m.boot(a.at)
	case modelEmpty, modelFlush:
		spend(&m.budget.empties)
		node.empty(&m.modelRules, a.kind == modelEmpty)
	case modelSync:
		spend(&m.budget.syncs)
		node.sync()
	case modelPromote, modelMove:
		spend(&m.budget.promotes)
		node.promote(node.replica, a.kind == modelPromote)
	case modelCopy:
		spend(&m.budget.promotes)
		m.copied(n, i)
	case modelUnmark:
		spend(&m.budget.unmarks)
		node.unmark()
	case modelDelete:
		spend(&m.budget.deletes)
		node.holder, node.left = 0, 0
	case modelExpire:
		node.holder, node.left = 0, 0
	case modelJump:
		m.exposes(n)
		node.holder, node.left, node.wait = 0, 0, 0
	}
	m.tidy()
	m.check()
}

func (m *protocol) tick() {
	for n := range m.nodes {
		node := &m.nodes[n]
		node.tick(&m.modelRules)
		node.replica.tick(&m.modelRules)
		for i := range node.cells {
			m.older(&node.cells[i].mint)
		}
	}
	m.older(&m.used)
	for i := range m.rows {
		row := &m.rows[i]
		m.older(&row.fence)
		switch row.phase {
		case modelAsking, modelFencing:
			row.age = min(row.age+1, m.leaseOf(i))
		case modelHeld:
			if row.renewing > 0 {
				row.since = min(row.since+1, m.leaseOf(i))
			}
			if row.trust--; row.trust <= 0 {
				m.over(i, 1)
			}
		}
	}
}

// write is a fence's writing back that reaches its node.
func (m *protocol) write(n, i int) {
	ours := m.nodes[n].writeFence(&m.modelRules, modelOwner(i+1), m.rows[i].fence)
	if cell := &m.nodes[n].cells[i]; cell.write == modelRaising {
		cell.write = modelNoWrite
		return
	}
	m.wroteBack(n, i, ours)
}

// writeLost is the end of a client's patience with it. The repairer does its part anew.
func (m *protocol) writeLost(n, i int) {
	cell := &m.nodes[n].cells[i]
	cell.wrote = 1
	if cell.write == modelWriteSent {
		m.wroteBack(n, i, false)
		return
	}
	cell.write = modelNoWrite
	if m.rows[i].phase == modelHeld && cell.ask == modelNoAsk {
		m.keep(cell)
	}
}

// forced is a ForceUnlock that reaches a node. Nothing is promised to the owner that loses
// the lock, which may not learn of it.
func (m *protocol) forced(n int) {
	node := &m.nodes[n]
	if node.force = 0; node.holder != 0 && m.rows[node.holder-1].phase != modelOver {
		m.rows[node.holder-1].forced = 1
	}
	node.holder, node.left = 0, 0
}

// copied makes a node a copy of another. Markers of another node mean nothing there.
func (m *protocol) copied(n, from int) {
	d := m.nodes[from].modelData
	if d.marker != modelUnmarked {
		d.marker = modelForeign
	}
	m.nodes[n].promote(d, false)
}

// modelBooted is the end of a DeclareNothingHeld: a step for the look at each
// node and one for each vote.
const modelBooted = 2*modelNodes + 1

// boot takes the next step of a client's DeclareNothingHeld. One that finds a vote, or a node
// that cannot vote, is over.
func (m *protocol) boot(c int8) {
	step := int(m.boots[c])
	if step == 0 {
		spend(&m.budget.boots)
	}
	m.boots[c]++
	switch {
	case m.mistakes.startDeclares && step < modelNodes && m.nodes[step].marker != modelUnmarked:
		m.boots[c] = modelBooted
	case step < modelNodes:
		vote, _ := m.nodes[step].look(&m.modelRules, m.marking(step, c), c)
		m.nodes[step].seen |= 1 << c
		if vote != 0 || !m.nodes[step].fits(&m.modelRules, c) {
			m.boots[c] = modelBooted
		}
	case step < 2*modelNodes:
		m.nodes[step-modelNodes].look(&m.modelRules, modelActivate, c)
		m.nodes[step-modelNodes].votes[c] = 0
	}
	if m.boots[c] == 2*modelNodes {
		m.boots[c] = modelBooted
	}
}
