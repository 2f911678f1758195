package fair_test

import "slices"

// tidy does what a client does at once, and makes states equal that differ in
// nothing that matters: each is searched from once then.
func (m *protocol) tidy() {
	for i := range m.clients {
		c := &m.clients[i]
		if c.crashed > 0 || c.stopped > 0 {
			continue
		}
		open := int8(0)
		for j := range m.waiters {
			if m.of[j] == int8(i) && m.waiters[j].waits() {
				open = 1
			}
		}
		if open == 0 {
			*c = modelClient{}
			continue
		}
		if c.open == 0 {
			c.open, c.fresh = 1, 0
		}
		m.enterAll(int8(i))
		if !m.crowded(int8(i)) {
			c.fresh, c.verify = 0, 0
		}
	}
	m.tidyEnters()
	m.tidyRanks()
	m.tidyOrder()
	m.tidyOwners()
	m.sort()
}

// tidyEnters lets replies arrive at once that no waiter waits for any more, and forgets the
// ages that do not matter.
func (m *protocol) tidyEnters() {
	for i := range m.waiters {
		w := &m.waiters[i]
		if w.phase != modelEntering && w.phase != modelWaiting {
			w.age = 0
		}
		if !m.mistakes.longRenewal {
			w.age = min(w.age, m.first/2+1) // from then on it has to confirm
		}
	}
	for i := range m.calls {
		call := &m.calls[i]
		if call.kind != modelEnter || call.stage != modelAnswered {
			continue
		}
		matters := func(o modelOwner) bool {
			w := &m.waiters[m.waiterOf(max(o, 1))]
			return o != 0 && w.owner == o && (w.phase == modelEntering || w.phase == modelWaiting)
		}
		o := call.reply.grant.owner
		if w := m.waiters[m.waiterOf(max(o, 1))]; o != 0 && w.owner != o {
			continue
		}
		if !slices.ContainsFunc(call.owners[:], matters) {
			*call = modelCall{}
			m.enterAll(call.client)
		}
	}
}

// tidyOwners forgets of owners that cannot come back what only matters if they do.
func (m *protocol) tidyOwners() {
	entering := modelSet(0) // a call is on its way that may have them enter or acquire
	for _, call := range m.calls {
		if (call.kind == modelEnter || call.kind == modelAcquire) && call.stage != modelAnswered {
			for _, o := range call.owners {
				entering.add(o)
			}
		}
	}
	seen, queued := entering.with(m.redis.holder), [modelClients]bool{}
	for _, o := range m.redis.queue {
		seen.add(o)
		if o != 0 {
			queued[m.client[o]] = true
		}
	}
	seen.remove(0)
	m.redis.stones &= entering
	m.ended &= seen
	for c := range queued {
		if !queued[c] { // a client that enters is alive then
			m.redis.alive[c], m.redis.polls[c] = 0, 0
		}
	}
	for i := range m.calls {
		call := &m.calls[i]
		if call.stage != modelLate || call.kind == modelEnter || call.kind == modelAcquire || call.kind == modelHeartbeat {
			continue
		}
		if !slices.ContainsFunc(call.owners[:], seen.has) {
			*call = modelCall{}
		}
	}
}

// tidyOrder forgets owners that are no longer in the queue.
func (m *protocol) tidyOrder() {
	n := 0
	for _, o := range m.order {
		if o != 0 && slices.Contains(m.redis.queue[:], o) {
			m.order[n] = o
			n++
		}
	}
	clear(m.order[n:])
	for o := range modelOwner(modelOwners) {
		if m.passed.has(o) && !slices.Contains(m.order[:], o) {
			m.passed.remove(o)
		}
	}
}

// tidyRanks numbers the waiters of each client anew, in their order.
func (m *protocol) tidyRanks() {
	for c := range m.clients {
		var waiting []int
		for i := range m.waiters {
			switch w := &m.waiters[i]; {
			case m.of[i] != int8(c):
			case w.phase == modelEntering, w.phase == modelWaiting:
				waiting = append(waiting, i)
			default:
				w.rank = 0
			}
		}
		slices.SortFunc(waiting, func(a, b int) int { return int(m.waiters[a].rank - m.waiters[b].rank) })
		for rank, i := range waiting {
			m.waiters[i].rank = int8(rank)
		}
		m.clients[c].ranks = int8(len(waiting))
	}
}
