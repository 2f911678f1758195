package fair_test

import "slices"

// The properties that each state must have.
const (
	modelTwo         = "two believe in their leases"
	modelWrong       = "a lease is believed in that Redis does not hold"
	modelOvertaken   = "a live waiter was overtaken"
	modelLeftOver    = "an owner is back whose end was answered"
	modelFence       = "a fence number does not grow"
	modelLost        = "a turn is lost"
	modelUndelivered = "the lock was given to a waiter that does not hear"
)

// breaks notes the first property that a step breaks.
func (m *protocol) breaks(what string) {
	if m.broken == "" {
		m.broken = what
	}
}

func (m *protocol) checkState() {
	believers := 0
	for i := range m.waiters {
		if w := &m.waiters[i]; w.believes() {
			believers++
			if w.field != m.redis.holder {
				defer m.breaks(modelWrong)
			}
		}
	}
	if believers > 1 {
		m.breaks(modelTwo)
	}
	if m.ended.has(m.redis.holder) {
		m.breaks(modelLeftOver)
	}
	for _, o := range m.redis.queue {
		if m.ended.has(o) {
			m.breaks(modelLeftOver)
		}
	}
}

// living reports whether o is the owner of a waiter.
func (m *protocol) living(o modelOwner) bool {
	w := &m.waiters[m.waiterOf(o)]
	return w.owner == o && (w.phase == modelEntering || w.phase == modelWaiting)
}

// checkGrant follows a script: has it given the lock to the first live waiter, except for
// those whose client is silent or did not get the message?
func (m *protocol) checkGrant(call modelCall, before modelOwner) {
	if granted := m.redis.holder; granted != before && granted != 0 {
		m.passed = 0
		if c := m.client[granted]; c != call.client && !m.redis.heard[c] && m.redis.polls[c] == 0 {
			m.breaks(modelUndelivered)
		}
		for _, o := range m.order {
			if o == granted || o == 0 {
				break
			}
			c := m.client[o]
			replies := c == call.client && call.kind != modelAcquire
			switch {
			case m.redis.alive[c] == 0, !m.living(o):
			case !replies && !m.redis.heard[c] && m.redis.polls[c] == 0:
				m.passed.add(o)
			default:
				m.breaks(modelOvertaken)
			}
		}
	}
	for _, o := range m.redis.queue {
		if o != 0 && !slices.Contains(m.order[:], o) {
			m.order[slices.Index(m.order[:], 0)] = o
		}
	}
}

// checkLease is called when Lock returns with a lease.
func (m *protocol) checkLease(i int) {
	w := &m.waiters[i]
	if w.fence <= m.used && m.fences {
		m.breaks(modelFence)
	}
	m.used = max(m.used, w.fence)
	if w.field == w.owner {
		return
	}
	for _, o := range m.order { // a member of a run
		if o == w.owner || o == 0 {
			break
		}
		if m.living(o) && !m.passed.has(o) {
			m.breaks(modelOvertaken)
		}
	}
}
