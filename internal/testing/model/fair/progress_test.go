package fair_test

import "hash/maphash"

// modelProgress looks for lost turns: from a state on, nothing fails any more, holders
// unlock at once, and clients heartbeat with each tick. Then every waiter has to be served,
// and the first of them soon. One client, any or none, vanishes silently at the beginning
// and never comes back.
type modelProgress struct {
	world modelWorld // as the search's, but nobody gives up
	seed  maphash.Seed
	known map[uint64]modelWay

	slowest modelWay // of all that were checked
}

// modelWay is the time, in ticks, until the next lease, and until there are no waiters.
type modelWay struct{ next, all int8 }

const (
	modelNever      = 100 // ticks
	modelHeartbeats = 2   // after so many, a waiter that can be served has been
)

func newModelProgress(x *modelWorld) *modelProgress {
	p := &modelProgress{world: *x, seed: maphash.MakeSeed(), known: map[uint64]modelWay{}}
	p.world.most, p.world.prompt = modelLives, true
	return p
}

// check returns what is broken from m's state on.
func (p *modelProgress) check(m *protocol) string {
	for gone := modelNobody; gone < modelClients; gone++ {
		if gone != modelNobody && (!m.active(gone) || m.clients[gone].crashed > 0) {
			continue
		}
		n := protocol{modelWorld: &p.world, modelState: m.modelState}
		n.heal(gone)
		way := p.way(&n, 0)
		bound := m.redis.left + modelHeartbeats
		if gone != modelNobody {
			bound += m.stale + m.first
		}
		if way.next > bound || way.all >= modelNever {
			return modelLost
		}
		p.slowest.next, p.slowest.all = max(p.slowest.next, way.next), max(p.slowest.all, way.all)
	}
	return ""
}

// heal ends all faults but that one client is gone.
func (m *protocol) heal(gone int8) {
	m.faults = modelFaults{}
	for i := range m.calls {
		m.calls[i].slow = 0
		if m.calls[i].stage == modelLate {
			m.calls[i] = modelCall{}
		}
	}
	for c := range m.clients {
		client := &m.clients[c]
		switch {
		case client.crashed > 0:
		case int8(c) == gone:
			client.stopped = 1
		default:
			client.stopped, client.cut = 0, 0
			m.heartbeatNow(int8(c))
		}
	}
	m.tidy()
}

// way follows the one way that there is from here.
func (p *modelProgress) way(m *protocol, ticks int) modelWay {
	before := m.leases
	fine := m.settle()
	served := m.leases > before
	h := maphash.Comparable(p.seed, m.modelState)
	w, known := p.known[h]
	if !known {
		switch {
		case !fine || m.spent || ticks >= modelNever:
			w = modelWay{modelNever, modelNever}
		case m.anybodyWaits():
			m.do(modelAction{modelTick, 0})
			w = p.way(m, ticks+1)
			w.next, w.all = min(w.next+1, modelNever), min(w.all+1, modelNever)
		}
		p.known[h] = w
	}
	if served {
		w.next = 0
	}
	return w
}

// settle does all that can be done within a tick; false if there is no end to it.
func (m *protocol) settle() bool {
	for range 1000 {
		a, more := m.due()
		if !more {
			return true
		}
		m.do(a)
	}
	return false
}

// due is the next action that is due in a world in which nothing fails any more.
func (m *protocol) due() (modelAction, bool) {
	for c := range m.clients {
		if m.runs(int8(c)) && m.clients[c].inbox[0].owner != 0 {
			return modelAction{modelDeliver, int8(c)}, true
		}
	}
	for i, call := range m.calls {
		switch {
		case call.stage == modelSent:
			return modelAction{modelExecute, int8(i)}, true
		case call.stage == modelAnswered && m.runs(call.client):
			return modelAction{modelAnswer, int8(i)}, true
		}
	}
	for i := range m.waiters {
		w := &m.waiters[i]
		switch {
		case w.phase != modelHeld || !m.runs(m.of[i]):
		case m.next(w) >= 0:
			return modelAction{modelHandover, int8(i)}, true
		default:
			return modelAction{modelUnlock, int8(i)}, true
		}
	}
	return modelAction{}, false
}

// anybodyWaits leaves out the waiters of clients that do nothing.
func (m *protocol) anybodyWaits() bool {
	for i := range m.waiters {
		w := &m.waiters[i]
		if (w.phase == modelAcquiring || w.waits()) && m.runs(m.of[i]) {
			return true
		}
	}
	return false
}
