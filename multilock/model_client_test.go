package multilock_test

// model is a state and the world it is in. Its methods are the steps of the
// clients, by the rules of the protocol.
type model struct {
	*modelWorld
	modelState
	broken string // the property that the last step has broken
	beside bool   // the state is one for which nothing is promised
	met    uint32 // what the last step has met with, a bit for each modelMeeting
}

// modelWorld is what does not change in a search.
type modelWorld struct {
	modelRules
	name      string
	of        [modelOwners]int8 // the client of each owner, in the order of their rounds; modelNobody: there is no such owner
	kinds     [modelNodes]modelKindOfNode
	limits    modelBudget
	renews    bool          // holders renew
	rough     bool          // renewals may be done, and denials heard, after their batch is decided
	drift     bool          // a node's clock may be fast by a tick in a lease
	still     bool          // no time passes
	fresh     bool          // nodes have never been used
	bootstrap bool          // clients may begin with Bootstrap
	prefix    []modelAction // what has happened already
}

const modelNobody = -1

func (x *modelWorld) clients() (n int) {
	for _, c := range x.of {
		n = max(n, int(c)+1)
	}
	return n
}

func (x *modelWorld) start() modelState {
	m := model{modelWorld: x, modelState: x.unused()}
	for _, a := range x.prefix {
		m.do(a)
	}
	return m.modelState
}

// unused is the state in which nothing has happened yet.
func (x *modelWorld) unused() (s modelState) {
	s.budget, s.used = x.limits, x.floor()
	for n := range s.nodes {
		node := &s.nodes[n]
		node.kind, node.fence, node.replica.fence = x.kinds[n], x.floor(), x.floor()
		if x.fresh {
			continue
		}
		node.marker, node.own, node.boot = 1, 1, 1
		for c := range x.clients() {
			node.votes[c] = 1
		}
		if node.kind.replicated > 0 {
			node.replica.marker = 1
		}
	}
	return s
}

// lock begins a round.
func (m *model) lock(i int) {
	m.rows[i].phase = modelAsking
	for n := range m.nodes {
		m.nodes[n].cells[i].ask = modelToAsk
		if m.nodes[n].votes[m.of[i]] != 0 {
			m.ask(n, i)
		}
	}
}

// ask sends an acquire.
func (m *model) ask(n, i int) {
	cell := &m.nodes[n].cells[i]
	cell.ask, cell.text = modelAsked, m.nodes[n].votes[m.of[i]]
	if m.seeds.newStart && m.rows[i].phase == modelAsking {
		m.rows[i].age = 0
	}
}

// look is a client's look at a node. Who waits for it is asked then, or has failed
// there.
func (m *model) look(n int, c int8) {
	node := &m.nodes[n]
	node.votes[c], _ = node.look(&m.modelRules, modelMark, c)
	for i := range m.rows {
		if m.of[i] != c || node.cells[i].ask != modelToAsk || m.rows[i].phase != modelAsking {
			continue
		}
		if node.votes[c] != 0 {
			m.ask(n, i)
			continue
		}
		node.cells[i].ask = modelNoAsk
		m.said(n, i, modelFailed)
	}
}

// arrive is an acquire that reaches its node. What is no yes is told at once: it
// changes nothing whether it is told later.
func (m *model) arrive(n, i int) {
	node := &m.nodes[n]
	cell := &node.cells[i]
	answer, fence := node.acquire(&m.modelRules, modelOwner(i+1), cell.text)
	m.meet(modelMeeting(answer))
	cell.text = 0
	switch answer {
	case modelYes:
		if cell.ask, cell.mint = modelAskedYes, fence; m.rows[i].phase == modelHeld && m.budget.losses == 0 {
			m.answered(n, i)
		}
	case modelNoVote:
		m.revoke(n, m.of[i])
		cell.ask = modelToAsk
	default:
		cell.ask, cell.there = modelNoAsk, 0
		m.said(n, i, modelSaidHeld)
	}
}

// revoke forgets a vote that is not good any more.
func (m *model) revoke(n int, c int8) {
	if node := &m.nodes[n]; node.own == 0 || node.votes[c] != node.marker {
		node.votes[c] = 0
	}
}

// arriveLate is an acquire that reaches its node after its client has given it up.
func (m *model) arriveLate(n, i, which int) {
	node := &m.nodes[n]
	answer, _ := node.acquire(&m.modelRules, modelOwner(i+1), node.cells[i].late[which])
	node.cells[i].late[which] = 0
	m.meet(modelLateYes + modelMeeting(answer))
}

// answered is a yes that reaches its client.
func (m *model) answered(n, i int) {
	cell := &m.nodes[n].cells[i]
	cell.ask, cell.there = modelNoAsk, 1
	if m.rows[i].phase == modelAsking {
		m.said(n, i, modelSaidYes)
		return
	}
	cell.mint = 0
	if row := &m.rows[i]; m.seeds.repairCounts && row.renewing > 0 && cell.renew != modelRenewed {
		cell.renew = modelRenewed
		m.decide(i)
	}
}

// unanswered is the end of a client's patience with an acquire.
func (m *model) unanswered(n, i int) {
	cell := &m.nodes[n].cells[i]
	if cell.ask == modelAsked {
		cell.late[0], cell.text = cell.text, 0 // the smaller is 0
	}
	cell.ask, cell.doubt, cell.mint = modelNoAsk, 1, 0
	if m.seeds.newStart && m.rows[i].phase == modelAsking {
		cell.ask = modelToAsk
		return
	}
	m.said(n, i, modelFailed)
}

// said takes in what a node said to an acquire.
func (m *model) said(n, i int, what modelSaid) {
	row, cell := &m.rows[i], &m.nodes[n].cells[i]
	switch {
	case row.phase == modelHeld:
		if what == modelFailed {
			cell.ask = modelToAsk // a repair, or one again
		}
		return
	case row.phase != modelAsking && row.phase != modelFencing:
		return
	}
	cell.said = what
	if row.phase == modelFencing {
		return
	}
	yes, pending := 0, 0
	for j := range m.nodes {
		switch m.nodes[j].cells[i].said {
		case modelSaidYes:
			yes++
		case modelPending:
			pending++
		}
	}
	switch {
	case yes >= modelNeed:
		m.won(i)
	case yes+pending < modelNeed:
		m.over(i, 1)
	}
}

// won is a round for which a quorum has said yes.
func (m *model) won(i int) {
	if !m.fences {
		m.hold(i)
		return
	}
	m.rows[i].phase, m.rows[i].fence = modelFencing, m.floor()
	for n := range m.nodes {
		if cell := &m.nodes[n].cells[i]; cell.said == modelSaidYes {
			m.rows[i].fence = max(m.rows[i].fence, cell.mint)
			cell.write = 1
		}
		m.nodes[n].cells[i].mint = 0
	}
	if m.seeds.noWriteBack {
		m.hold(i)
	}
}

// wroteBack takes in what became of a fence on a node.
func (m *model) wroteBack(n, i int, ok bool) {
	m.nodes[n].cells[i].write = 3
	if ok {
		m.nodes[n].cells[i].write = 2
	}
	done, pending := 0, 0
	for j := range m.nodes {
		switch m.nodes[j].cells[i].write {
		case 1:
			pending++
		case 2:
			done++
		}
	}
	switch {
	case m.rows[i].phase != modelFencing:
	case done >= modelNeed:
		m.hold(i)
	case done+pending < modelNeed:
		m.over(i, 1)
	}
}

// hold hands the lease out.
func (m *model) hold(i int) {
	row := &m.rows[i]
	row.trust = m.believed() - row.age
	if m.seeds.fromReply {
		row.trust = m.believed()
	}
	row.phase, row.age = modelHeld, 0
	m.excuse(i)
	if row.trust <= 0 {
		m.over(i, 1)
		return
	}
	if m.fences {
		m.checkFence(row.fence)
	}
	for n := range m.nodes {
		cell := &m.nodes[n].cells[i]
		if cell.said == modelFailed {
			cell.ask = modelToAsk
		}
		cell.said = modelPending
	}
}

// over ends an owner, on all nodes that may know of it. how is as in a cell's end.
func (m *model) over(i int, how int8) {
	row := &m.rows[i]
	fence := row.fence
	*row = modelRow{phase: modelOver}
	if how == 2 {
		row.fence = fence
	}
	for n := range m.nodes {
		cell := &m.nodes[n].cells[i]
		old := *cell
		*cell = modelCell{late: old.late, slow: old.slow, doubt: old.doubt}
		if old.ask == modelAsked {
			cell.late[0] = old.text
		}
		if old.ask >= modelAsked {
			cell.doubt = 1
		}
		if old.renew == modelRenewSent && m.rough {
			cell.slow = 1
		}
		if old.write == 1 {
			cell.write = 1
		}
		if old.there > 0 || cell.doubt > 0 && !m.seeds.onlyAcquired {
			cell.end = how
		}
		if m.seeds.repairsEnded && old.ask == modelToAsk {
			cell.ask = modelToAsk
		}
	}
}

// end is the end of an owner on one node.
func (m *model) end(n, i int) {
	cell := &m.nodes[n].cells[i]
	var last *int8
	if cell.end == 2 && m.fences && (cell.doubt == 0 || m.seeds.givesBackLate) {
		last = &m.rows[i].fence
	}
	m.nodes[n].end(modelOwner(i+1), cell.doubt > 0 && !m.seeds.noStone, last)
	cell.end, cell.doubt = 0, 0
}
