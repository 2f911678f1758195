package multilock_test

// protocol is a state and the world it is in. Its methods are the steps of the
// clients, by the rules of the protocol.
type protocol struct {
	*modelWorld
	modelState
	broken string                // the property that the last step has broken
	meets  uint32                // what the last step has met with, a bit for each modelMeeting
	met    uint32                // what all steps have met with
	did    [modelActionKinds]int // times each kind of action was taken
	hasher *modelHasher
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
	prompt    bool          // a yes that is on its way when a round is won is heard before the fence is written back
	exact     bool          // it is promised that a clock may jump at any moment
	strangers int           // so many of the clients, or of their like, use the nodes for other keys
	moves     bool          // a promotion is of another process, which knows no scripts
	still     bool          // no time passes
	settled   bool          // all nodes are used as those of the last client
	fresh     bool          // nodes have never been used
	declares  bool          // clients may begin with DeclareNothingHeld
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
	m := protocol{modelWorld: x, modelState: x.unused()}
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
		first := int8(0)
		if x.settled {
			first = int8(x.clients()) - 1
		}
		if x.fresh || n >= int(x.size(first)) {
			continue
		}
		node.marker, node.own, node.boot, node.most, node.size = 1, 1, 1, x.longest(first), x.size(first)
		for c := range x.clients() {
			if node.fits(&x.modelRules, int8(c)) {
				node.votes[c] = 1
			}
		}
		if node.kind.replicated > 0 {
			node.replica.marker, node.replica.most, node.replica.size = 1, node.most, node.size
		}
	}
	return s
}

// lock begins a round.
func (m *protocol) lock(i int) {
	m.rows[i].phase = modelAsking
	for n := range m.size(m.of[i]) {
		m.nodes[n].cells[i].ask = modelToAsk
		if m.nodes[n].votes[m.of[i]] != 0 {
			m.ask(int(n), i)
		}
	}
}

// ask sends an acquire.
func (m *protocol) ask(n, i int) {
	cell := &m.nodes[n].cells[i]
	cell.ask, cell.text, cell.gave = modelAsked, m.nodes[n].votes[m.of[i]], 0
	if cell.plain > 0 {
		cell.text |= modelPlain
	}
	if m.mistakes.newStart && m.rows[i].phase == modelAsking {
		m.rows[i].age = 0
	}
}

// marking is how a client looks at a node, which it marks unless most of the others are
// marked for another deployment. It is told by all of them at once, and in no time.
func (m *protocol) marking(n int, c int8) modelLooking {
	others, answered := 0, int(m.size(c))-1
	for j := range m.size(c) {
		if other := &m.nodes[j]; int(j) != n && other.own > 0 && !other.fits(&m.modelRules, c) {
			others++
		}
	}
	if others > 0 && 2*others >= answered && !m.mistakes.asksNobody {
		return modelTell
	}
	return modelMark
}

// look is a client's check of a node. The asks that wait for it are then sent, or have
// failed there.
func (m *protocol) look(n int, c int8) {
	node := &m.nodes[n]
	node.votes[c], _ = node.look(&m.modelRules, m.marking(n, c), c)
	for i := range m.rows {
		if m.of[i] != c || node.cells[i].ask != modelToAsk || m.rows[i].phase != modelAsking {
			continue
		}
		if node.votes[c] != 0 {
			m.ask(n, i)
			continue
		}
		node.cells[i].ask = modelNoAsk
		m.replied(n, i, modelFailed)
	}
}

// arrive is an acquire that reaches its node. What is no yes is told at once: it
// changes nothing whether it is told later.
func (m *protocol) arrive(n, i int) {
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
		cell.ask, cell.there = modelNoAsk, modelAbsent
		m.replied(n, i, modelRepliedHeld)
	}
}

// keep has the repairer add a hold on a node.
func (m *protocol) keep(cell *modelCell) {
	cell.ask = modelToAsk
	if m.fences {
		cell.plain = 1
	}
}

// revoke forgets a vote that is not good any more.
func (m *protocol) revoke(n int, c int8) {
	if node := &m.nodes[n]; node.own == 0 || node.votes[c] != node.marker {
		node.votes[c] = 0
	}
}

// arriveLate is an acquire that reaches its node after its client has given it up.
func (m *protocol) arriveLate(n, i, which int) {
	node := &m.nodes[n]
	answer, _ := node.acquire(&m.modelRules, modelOwner(i+1), node.cells[i].late[which])
	node.cells[i].late[which] = 0
	m.meet(modelLateYes + modelMeeting(answer))
}

// answered is a yes that reaches its client.
func (m *protocol) answered(n, i int) {
	cell := &m.nodes[n].cells[i]
	cell.ask, cell.there = modelNoAsk, modelPresent
	if m.rows[i].phase == modelAsking {
		m.replied(n, i, modelRepliedYes)
		return
	}
	if cell.mint = 0; m.fences {
		cell.write = modelRaising
	}
	if row := &m.rows[i]; m.mistakes.repairCounts && row.renewing > 0 && cell.renew != modelRenewed {
		cell.renew = modelRenewed
		m.decide(i)
	}
}

// unanswered is the end of a client's patience with an acquire.
func (m *protocol) unanswered(n, i int) {
	cell := &m.nodes[n].cells[i]
	if cell.ask == modelAsked {
		cell.late[0], cell.text = cell.text, 0 // the smaller is 0
	}
	cell.ask, cell.doubt, cell.mint = modelNoAsk, 1, 0
	if m.mistakes.newStart && m.rows[i].phase == modelAsking {
		cell.ask = modelToAsk
		return
	}
	m.replied(n, i, modelFailed)
}

// replied takes in what a node replied to an acquire.
func (m *protocol) replied(n, i int, reply modelReply) {
	row, cell := &m.rows[i], &m.nodes[n].cells[i]
	switch {
	case row.phase == modelHeld:
		m.keep(cell) // a repair, or one again
		return
	case row.phase != modelAsking && row.phase != modelFencing:
		return
	}
	cell.reply = reply
	if row.phase == modelFencing {
		return
	}
	yes, pending, need := 0, 0, m.need(m.of[i])
	for j := range m.size(m.of[i]) {
		switch m.nodes[j].cells[i].reply {
		case modelRepliedYes:
			yes++
		case modelPending:
			pending++
		}
	}
	switch {
	case yes >= need:
		m.won(i)
	case yes+pending < need:
		m.over(i, 1)
	}
}
