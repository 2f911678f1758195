package multilock_test

// won is a round for which a quorum has said yes.
func (m *protocol) won(i int) {
	if !m.fences {
		m.hold(i)
		return
	}
	m.rows[i].phase, m.rows[i].fence = modelFencing, m.floor()
	for n := range m.nodes {
		cell := &m.nodes[n].cells[i]
		if m.prompt && cell.ask == modelAskedYes {
			cell.ask, cell.there, cell.reply = modelNoAsk, modelPresent, modelRepliedYes
		}
		if cell.reply == modelRepliedYes {
			m.rows[i].fence = max(m.rows[i].fence, cell.mint)
			cell.write, cell.gave = modelWriteSent, 1
		}
		m.nodes[n].cells[i].mint = 0
	}
	if m.mistakes.noWriteBack {
		m.hold(i)
	}
}

// wroteBack takes in what became of a fence on a node.
func (m *protocol) wroteBack(n, i int, ok bool) {
	m.nodes[n].cells[i].write = modelUnwritten
	if ok {
		m.nodes[n].cells[i].write = modelWritten
	}
	done, pending := 0, 0
	for j := range m.nodes {
		switch m.nodes[j].cells[i].write {
		case modelWriteSent:
			pending++
		case modelWritten:
			done++
		}
	}
	switch {
	case m.rows[i].phase != modelFencing:
	case done >= m.need(m.of[i]):
		m.hold(i)
	case done+pending < m.need(m.of[i]):
		m.over(i, 1)
	}
}

// hold hands the lease out.
func (m *protocol) hold(i int) {
	row := &m.rows[i]
	row.trust = m.believed(i) - row.age
	if m.mistakes.fromReply {
		row.trust = m.believed(i)
	}
	row.phase, row.age = modelHeld, 0
	if row.trust <= 0 {
		m.over(i, 1)
		return
	}
	if m.fences {
		m.checkFence(row)
	}
	for n := range m.nodes {
		cell := &m.nodes[n].cells[i]
		if cell.reply == modelFailed || cell.reply == modelRepliedHeld && !m.mistakes.heldStays {
			m.keep(cell)
		}
		cell.reply = modelPending
	}
}

// over ends an owner, on all nodes that may know of it. how is as in a cell's end.
func (m *protocol) over(i int, how int8) {
	row := &m.rows[i]
	*row = modelRow{phase: modelOver, fence: row.fence}
	for n := range m.nodes {
		cell := &m.nodes[n].cells[i]
		old := *cell
		*cell = modelCell{late: old.late, slow: old.slow, doubt: old.doubt, there: old.there, gave: old.gave, wrote: old.wrote}
		if old.ask == modelAsked {
			cell.late[0] = old.text
		}
		if old.ask >= modelAsked {
			cell.doubt = 1
		}
		if old.renew == modelRenewSent && m.rough {
			cell.slow = 1
		}
		if old.write == modelWriteSent || old.write == modelRaising {
			cell.wrote = 1
		}
		if old.there == modelPresent || (old.there == modelUnsure || cell.doubt > 0) && !m.mistakes.onlyAcquired {
			cell.end = how
		}
		if m.mistakes.repairsEnded && old.ask == modelToAsk {
			cell.ask = modelToAsk
		}
	}
}

// end is the end of an owner on one node.
func (m *protocol) end(n, i int) {
	cell := &m.nodes[n].cells[i]
	var last *int8
	if cell.end == 2 && m.fences && (cell.doubt == 0 && cell.there == modelPresent && cell.gave > 0 || m.mistakes.givesBackLate) {
		last = &m.rows[i].fence
	}
	m.nodes[n].end(modelOwner(i+1), cell.doubt > 0 && !m.mistakes.noStone, last)
}
