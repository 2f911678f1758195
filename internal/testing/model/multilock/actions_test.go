package multilock_test

import "fmt"

// modelAction is one thing that may happen, to a node and an owner or client.
type modelAction struct {
	kind     modelActionKind
	node, at int8
}

type modelActionKind int8

const (
	modelTick        modelActionKind = iota // the clock moves on by one, for everybody
	modelLock                               // an owner's round begins
	modelUnlock                             // its hold is released
	modelCutShort                           // its round is given up
	modelLook                               // a client looks at a node
	modelStranger                           // a client does that takes other keys
	modelAskNow                             // the repairer adds a hold
	modelArrive                             // an acquire reaches its node
	modelArriveLate                         // one that has been given up does
	modelAnswer                             // its yes reaches the client
	modelTimeout                            // the client does not wait for it any more
	modelWrite                              // a fence is written back
	modelWriteLost                          // that is not answered
	modelWriteLate                          // one that is not waited for any more is done
	modelEnd                                // an owner is ended on a node
	modelEndAgain                           // that is not answered: it is told again
	modelForce                              // ForceUnlock is called
	modelForced                             // it reaches a node
	modelRenewNow                           // a holder renews
	modelRenewArrive                        // a renewal reaches a node
	modelRenewAnswer                        // its answer reaches the client
	modelRenewLost                          // the client does not wait for it any more
	modelRenewLate                          // one that has been given up reaches its node
	modelBoot                               // a client's DeclareNothingHeld takes its next step
	modelEmpty                              // a node restarts without data, or is flushed
	modelFlush                              // it is flushed, where that is not the same
	modelSync                               // a node's replica is brought up to date
	modelPromote                            // the node goes on with the replica's data
	modelMove                               // so does another process
	modelCopy                               // it goes on with the data of node at
	modelUnmark                             // a node's marker is deleted by hand
	modelExpire                             // a hold ends on a fast clock
	modelJump                               // a hold or quarantine ends on a wrong clock
	modelDelete                             // a hold that is on all nodes is deleted on one by hand
	modelActionKinds
)

// actions appends all that may happen next.
func (m *protocol) actions(all []modelAction) []modelAction {
	do := func(kind modelActionKind, n, at int) { all = append(all, modelAction{kind, int8(n), int8(at)}) }
	if m.ticking() {
		do(modelTick, 0, 0)
	}
	for i := range m.rows {
		if m.of[i] != modelNobody {
			m.rowActions(i, do)
		}
	}
	for n := range m.nodes {
		m.nodeActions(n, do)
		for c := range m.strangers {
			if m.nodes[n].own == 0 && n < int(m.size(int8(c))) {
				do(modelStranger, n, c)
			}
		}
		for c := range m.clients() {
			if m.nodes[n].votes[c] == 0 && m.wants(n, int8(c)) {
				do(modelLook, n, c)
			}
		}
		for i := range m.rows {
			if m.of[i] != modelNobody {
				m.cellActions(n, i, do)
			}
		}
	}
	if m.budget.forces != 0 {
		do(modelForce, 0, 0)
	}
	if m.declares {
		for c := range m.clients() {
			if m.boots[c] < modelBooted && (m.boots[c] > 0 || m.budget.boots > 0) {
				do(modelBoot, 0, c)
			}
		}
	}
	return all
}

// ticking reports whether time can make a difference.
func (m *protocol) ticking() bool {
	if m.still {
		return false
	}
	for n := range m.nodes {
		if node := &m.nodes[n]; node.holder != 0 || node.wait > 0 || node.replica.holder != 0 || node.replica.wait > 0 {
			return true
		}
	}
	for _, row := range m.rows {
		if row.phase != modelIdle && row.phase != modelOver {
			return true
		}
	}
	return m.fences
}

func (m *protocol) rowActions(i int, do func(modelActionKind, int, int)) {
	switch row := &m.rows[i]; row.phase {
	case modelIdle:
		if i == 0 || m.of[i-1] != m.of[i] || m.rows[i-1].phase == modelOver {
			do(modelLock, 0, i)
		}
	case modelAsking, modelFencing:
		if m.budget.losses != 0 {
			do(modelCutShort, 0, i)
		}
	case modelHeld:
		do(modelUnlock, 0, i)
		if m.renews && m.fixed[i] == 0 && row.renewing == 0 && (row.trust < m.believed(i) || m.rough) {
			do(modelRenewNow, 0, i)
		}
	}
}

// wants reports whether a client that has no vote on a node looks there.
func (m *protocol) wants(n int, c int8) bool {
	for i, cell := range m.nodes[n].cells {
		if m.of[i] == c && (cell.ask == modelToAsk || cell.renew == modelRenewSent) {
			return true
		}
	}
	return false
}

func (m *protocol) cellActions(n, i int, do func(modelActionKind, int, int)) {
	cell := &m.nodes[n].cells[i]
	lossy := m.budget.losses != 0
	switch cell.ask {
	case modelToAsk:
		if m.nodes[n].votes[m.of[i]] != 0 {
			do(modelAskNow, n, i)
		}
	case modelAsked:
		do(modelArrive, n, i)
		if lossy && cell.late[0] == 0 {
			do(modelTimeout, n, i)
		}
	case modelAskedYes:
		do(modelAnswer, n, i)
		if lossy {
			do(modelTimeout, n, i)
		}
	}
	for which, text := range cell.late {
		if text != 0 {
			do(modelArriveLate, n, i+which*modelOwners)
		}
	}
	if cell.write == modelWriteSent || cell.write == modelRaising {
		do(modelWrite, n, i)
		if lossy {
			do(modelWriteLost, n, i)
		}
	}
	if cell.wrote > 0 {
		do(modelWriteLate, n, i)
	}
	if cell.end > 0 {
		do(modelEnd, n, i)
		if lossy {
			do(modelEndAgain, n, i)
		}
	}
	switch cell.renew {
	case modelRenewSent:
		do(modelRenewArrive, n, i)
	case modelRenewYes, modelDenying:
		do(modelRenewAnswer, n, i)
	}
	if lossy && cell.renew >= modelRenewSent && cell.renew <= modelDenying {
		do(modelRenewLost, n, i)
	}
	if cell.slow > 0 {
		do(modelRenewLate, n, i)
	}
}

func (m *protocol) nodeActions(n int, do func(modelActionKind, int, int)) {
	node := &m.nodes[n]
	if m.budget.empties != 0 && (node.modelData != modelData{fence: m.floor()}) {
		do(modelEmpty, n, 0)
		if m.mistakes.existence {
			do(modelFlush, n, 0)
		}
	}
	if node.kind.replicated > 0 {
		if m.budget.syncs != 0 && node.replica != node.modelData {
			do(modelSync, n, 0)
		}
		if m.budget.promotes != 0 {
			if !m.moves {
				do(modelPromote, n, 0)
			} else {
				do(modelMove, n, 0)
			}
		}
	}
	if node.kind.copied > 0 && m.budget.promotes != 0 {
		for from := range m.nodes {
			if from != n {
				do(modelCopy, n, from)
			}
		}
	}
	if m.budget.unmarks != 0 && node.marker != modelUnmarked {
		do(modelUnmark, n, 0)
	}
	if m.budget.deletes != 0 && node.holder != 0 && m.nodes[0].holder == m.nodes[1].holder && m.nodes[1].holder == m.nodes[2].holder {
		do(modelDelete, n, 0)
	}
	if node.force > 0 {
		do(modelForced, n, 0)
	}
	if m.drift && node.left == 1 {
		do(modelExpire, n, 0)
	}
	if node.kind.wrong > 0 && (node.holder != 0 || node.wait > 0) {
		do(modelJump, n, 0)
	}
}

func (a modelAction) String() string {
	name := []string{
		"tick", "lock", "unlock", "cut short", "look", "stranger looks", "ask", "arrive", "arrive late", "answer", "time out",
		"write", "write lost", "write late", "end", "end again", "force", "forced", "renew", "renew arrives", "renew answered", "renew lost", "renew late",
		"declares", "empty", "flush", "sync", "promote", "move", "copy", "unmark", "expire", "jump", "delete",
	}[a.kind]
	return fmt.Sprintf("%s at node %d of %d", name, a.node, a.at)
}
