package fair_test

// do takes one step.
func (m *protocol) do(a modelAction) {
	m.broken = ""
	at := int(a.at)
	switch a.kind {
	case modelTick:
		m.tick(at)
	case modelLock:
		m.lock(at)
	case modelUnlock:
		m.unlock(at)
	case modelHandover:
		m.handover(at)
	case modelCancel:
		m.spend(&m.faults.cancels)
		m.cancel(at)
	case modelExecute:
		m.execute(at)
	case modelAnswer:
		call := m.calls[at]
		m.calls[at] = modelCall{}
		m.answered(call)
	case modelTimeout:
		m.spend(&m.faults.timeouts)
		m.timeout(at)
	case modelDeliver:
		m.hear(a.at, m.clients[at].pop(), 0, 0)
	case modelSendHeartbeat:
		m.heartbeat(a.at)
	case modelSendRenew:
		w := m.waiters[at]
		c := m.of[at]
		m.send(modelRequest{kind: modelRenew, client: c, owners: modelOne(w.field), lease: m.lease[c]}, 1)
	case modelCrash:
		m.spend(&m.faults.crashes)
		m.crash(a.at)
	case modelCut:
		m.spend(&m.faults.cuts)
		m.clients[at].cut = 1
		m.clients[at].inbox = [modelInbox]modelGrant{}
	case modelReconnect:
		m.clients[at].cut = 0
		m.heartbeatNow(a.at)
	case modelDelete:
		m.spend(&m.faults.deletes)
		m.redis.queue = [modelQueue]modelOwner{}
	case modelSlow:
		m.spend(&m.faults.slows)
		m.calls[at].slow = 1
	case modelStop:
		m.spend(&m.faults.stops)
		m.clients[at].stopped = 1
	case modelContinue:
		m.clients[at].stopped = 0
		m.heartbeatNow(a.at)
	}
	m.tidy()
	m.checkState()
}

func (m *protocol) spend(of *int8) {
	*of--
	m.faults.all--
}

func (m *protocol) tick(heartbeatsFirst int) {
	m.redis.expire()
	for i := range m.waiters {
		w := &m.waiters[i]
		switch w.phase {
		case modelEntering, modelWaiting:
			w.age = min(w.age+1, m.first+1)
		case modelHeld:
			if w.trust--; w.trust <= 0 {
				w.finish()
			}
		}
	}
	for c := range m.clients {
		if m.crowded(int8(c)) {
			m.clients[c].fresh = min(m.clients[c].fresh+1, m.stale+1)
		}
	}
	for i := range m.calls {
		if call := &m.calls[i]; m.aging(call) {
			call.age = min(call.age+1, m.oldest())
		}
	}
	for c := range m.clients {
		m.heartbeatNow(int8((heartbeatsFirst + c) % modelClients))
	}
}

// heartbeatNow has a client of a prompt world heartbeat.
func (m *protocol) heartbeatNow(c int8) {
	if m.prompt && m.runs(c) && m.clients[c].open > 0 {
		m.heartbeat(c)
	}
}

// aging reports whether it matters when a call began.
func (m *protocol) aging(call *modelCall) bool {
	switch call.kind {
	case modelAcquire, modelConfirm, modelRenew:
		return call.stage != modelLate
	case modelEnter:
		return call.stage != modelLate && (m.crowded(call.client) || m.mistakes.enterMovesTrust)
	case modelHeartbeat:
		return call.stage != modelLate && (m.crowded(call.client) || m.mistakes.heartbeatMovesTrust)
	}
	return false
}

// crowded reports whether a client has several waiters, so that a heartbeat may leave some
// out.
func (m *protocol) crowded(c int8) bool {
	n := 0
	for i := range m.waiters {
		if m.of[i] == c && m.waiters[i].waits() {
			n++
		}
	}
	return n > 1
}

// oldest is an age from which on nothing is trusted that began then.
func (m *protocol) oldest() int8 {
	age := m.first
	for c := range m.lease {
		age = max(age, m.lease[c])
	}
	return max(age, m.stale) + 1
}

// execute runs a call in Redis.
func (m *protocol) execute(at int) {
	call := m.calls[at]
	for c := range m.clients {
		m.redis.heard[c] = m.listens(int8(c))
	}
	before := m.redis.holder
	reply, message := m.redis.call(&m.modelRules, call.modelRequest)
	m.checkGrant(call, before)
	m.redis.heard = [modelClients]bool{}
	if message.to != modelNobody {
		m.clients[message.to].push(message.grant)
	}
	if call.stage == modelLate {
		m.calls[at] = modelCall{}
		return
	}
	m.calls[at].stage, m.calls[at].reply = modelAnswered, reply
	if m.trivial(call.kind, reply) && m.runs(call.client) {
		call = m.calls[at]
		m.calls[at] = modelCall{}
		m.answered(call)
	}
}

// trivial reports whether it does not matter when a reply arrives.
func (m *protocol) trivial(kind modelKind, reply modelReply) bool {
	return (kind == modelRelease || kind == modelLeave || kind == modelHeartbeat) &&
		reply.grant.owner == 0 && reply.absent == 0
}

func (m *protocol) listens(c int8) bool {
	return m.clients[c].open > 0 && m.clients[c].cut == 0 && m.clients[c].crashed == 0
}

// timeout ends a client's patience. A call that has not run may still do so.
func (m *protocol) timeout(at int) {
	call := m.calls[at]
	if call.stage == modelAnswered {
		m.calls[at] = modelCall{}
	} else {
		m.calls[at] = modelCall{stage: modelLate, modelRequest: call.modelRequest}
	}
	m.unanswered(call)
}

// crash ends a client. What it has sent may still run.
func (m *protocol) crash(c int8) {
	m.clients[c] = modelClient{crashed: 1}
	for i := range m.waiters {
		if m.of[i] == c {
			m.waiters[i].finish()
		}
	}
	for i := range m.calls {
		switch call := &m.calls[i]; {
		case call.client != c:
		case call.stage == modelSent:
			*call = modelCall{stage: modelLate, modelRequest: call.modelRequest}
		case call.stage == modelAnswered:
			*call = modelCall{}
		}
	}
}
