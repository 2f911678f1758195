package fair_test

import "slices"

// answered is the arrival of a reply at a client.
func (m *protocol) answered(call modelCall) {
	c := call.client
	switch call.kind {
	case modelAcquire:
		m.acquired(call)
	case modelEnter:
		m.clients[c].fresh = min(m.clients[c].fresh, call.age)
		for n, o := range call.owners {
			if o != 0 {
				m.entered(o, call, call.reply.places[n])
			}
		}
	case modelRelease, modelLeave:
		m.end(call)
	case modelConfirm:
		m.confirmed(call)
	case modelHeartbeat:
		m.looked(call)
	case modelRenew:
		for i := range m.waiters {
			if w := &m.waiters[i]; w.phase == modelHeld && w.field == call.owners[0] {
				if call.reply.status == 0 {
					w.finish()
				} else {
					w.trust = max(w.trust, call.lease-call.age)
				}
			}
		}
	}
	m.hear(c, call.reply.grant, call.kind, call.age)
}

func (m *protocol) acquired(call modelCall) {
	i := m.waiterOf(call.owners[0])
	w := &m.waiters[i]
	held := call.reply.status == 0
	switch {
	case w.phase != modelAcquiring:
		if held {
			m.leave(call.client, call.owners[0], 0)
		}
	case held && call.age < call.lease:
		m.hold(i, w.owner, call.lease-call.age, call.reply.fence, call.reply.fenceEnd, [modelMembers]modelOwner{})
	case held:
		m.leave(call.client, w.owner, 0)
		w.finish()
	default:
		w.phase = modelOutside
		w.owner = m.owner(i, w.lives)
		w.lives++
	}
}

// entered is what an enter says of one owner. A grant in its reply comes after.
func (m *protocol) entered(o modelOwner, call modelCall, place int8) {
	i := m.waiterOf(o)
	w := &m.waiters[i]
	if w.owner != o || w.phase != modelEntering {
		return
	}
	switch place {
	case 1:
		w.phase = modelWaiting
	case 0:
		m.granted(i, modelGrant{owner: o}, modelEnter, call.age)
	default:
		m.again(i)
	}
}

// end is an answered release or leave.
func (m *protocol) end(call modelCall) {
	m.ended.add(call.owners[0])
	if call.kind == modelRelease && call.reply.status > 0 {
		for _, o := range call.owners[1:] {
			m.ended.add(o)
		}
	}
	m.ended.remove(0)
	if m.mistakes.ownersAgain {
		m.ended = 0
	}
}

func (m *protocol) confirmed(call modelCall) {
	i := m.waiterOf(call.owners[0])
	w := &m.waiters[i]
	trust := call.lease - call.age
	switch {
	case w.owner != call.owners[0], w.phase != modelConfirming:
	case call.reply.status == 0:
		m.again(i)
	case trust <= 0:
		m.send(call.modelRequest, 2)
	default:
		m.hold(i, w.owner, trust, call.reply.fence, call.reply.fenceEnd, w.rest)
	}
}

func (m *protocol) looked(call modelCall) {
	c := &m.clients[call.client]
	c.fresh = min(c.fresh, call.age)
	for _, o := range call.owners {
		if o == 0 || !call.reply.absent.has(o) {
			continue
		}
		if i := m.waiterOf(o); m.waiters[i].owner == o && m.waiters[i].phase == modelWaiting {
			m.again(i)
			c.verify = 1
		}
	}
}

// heartbeat is a client's next heartbeat: for its oldest waiter, or for all of them if they
// may have lost their places. It is done at once: one that is done later differs in
// nothing from one that is sent later.
func (m *protocol) heartbeat(c int8) {
	client := &m.clients[c]
	var waiting []int
	for i := range m.waiters {
		if m.of[i] == c && m.waiters[i].phase == modelWaiting {
			waiting = append(waiting, i)
		}
	}
	slices.SortFunc(waiting, func(a, b int) int { return int(m.waiters[a].rank - m.waiters[b].rank) })
	if client.verify == 0 && client.fresh <= m.stale && len(waiting) > 1 {
		waiting = waiting[:1]
	}
	q := modelRequest{kind: modelHeartbeat, client: c, polls: client.cut}
	for n, i := range waiting {
		q.owners[n] = m.waiters[i].owner
	}
	client.verify = 0
	m.send(q, 1)
	m.execute(slices.IndexFunc(m.calls[:], func(call modelCall) bool { return call.kind == modelHeartbeat && call.stage == modelSent }))
}

// unanswered is the end of a client's patience with a call, which may have been
// done, or may still be.
func (m *protocol) unanswered(call modelCall) {
	q := call.modelRequest
	switch call.kind {
	case modelAcquire:
		m.leave(q.client, q.owners[0], 1)
		if i := m.waiterOf(q.owners[0]); m.waiters[i].phase == modelAcquiring {
			w := &m.waiters[i]
			w.phase, w.owner = modelOutside, m.owner(i, w.lives)
			w.lives++
		}
	case modelEnter:
		m.enterAgain(q)
	case modelConfirm:
		if w := m.waiters[m.waiterOf(q.owners[0])]; w.owner == q.owners[0] && w.phase == modelConfirming {
			m.send(q, 2)
		}
	case modelRelease, modelLeave:
		if call.attempt == 1 { // then it is left to the lease and to the heartbeats
			m.send(q, 2)
		}
	}
}

// enterAgain repeats an enter, without the owners that have got the lock meanwhile: no call
// of those may still arrive.
func (m *protocol) enterAgain(q modelRequest) {
	owners, n := q.owners, 0
	q.owners = [modelNamed]modelOwner{}
	some := false
	for _, o := range owners {
		if o == 0 {
			break
		}
		w := &m.waiters[m.waiterOf(o)]
		enters := w.owner == o && w.phase == modelEntering
		if enters {
			w.doubt, some = 1, true
		}
		if enters || m.mistakes.repeatsGranted {
			q.owners[n] = o
			n++
		}
	}
	if some {
		m.send(q, 2)
	}
}
