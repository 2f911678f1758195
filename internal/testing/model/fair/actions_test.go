package fair_test

import "fmt"

// modelAction is one thing that may happen, to the waiter, client or call at.
type modelAction struct {
	kind modelActionKind
	at   int8
}

type modelActionKind int8

const (
	modelTick          modelActionKind = iota // the clock moves on by one, for everybody
	modelLock                                 // a waiter calls Lock
	modelUnlock                               // the lease ends and the hold is released
	modelHandover                             // the lease ends and the next of the run has the hold
	modelCancel                               // a waiter gives up
	modelExecute                              // a call reaches Redis
	modelAnswer                               // a reply reaches its client
	modelTimeout                              // a client does not wait for a reply any more
	modelDeliver                              // the first message of an inbox reaches its client
	modelSendHeartbeat                        // a client heartbeats
	modelSendRenew                            // a holder renews
	modelCrash                                // a client is gone, and its connections with it
	modelCut                                  // a client's subscription is cut, what was on its way is lost
	modelReconnect                            // it is there again
	modelDelete                               // somebody deletes the list of waiters
	modelSlow                                 // a call will take ticks
	modelStop                                 // a client stops, and nothing of its own goes on but the clock
	modelContinue                             // it goes on
	modelActionKinds
)

// actions appends all that may happen next. Where the world is not prompt, whatever
// is on its way may stay so while the clock ticks.
func (m *protocol) actions(all []modelAction) []modelAction {
	do := func(kind modelActionKind, at int) { all = append(all, modelAction{kind, int8(at)}) }
	faulty := func(kind modelActionKind, at int, left int8) {
		if left > 0 && m.faults.all > 0 {
			do(kind, at)
		}
	}
	m.tickActions(do)
	for i := range m.waiters {
		m.waiterActions(i, do, faulty)
	}
	for i, call := range m.calls {
		if call.stage == modelSent || call.stage == modelLate {
			do(modelExecute, i)
		}
		if call.stage == modelAnswered && m.runs(call.client) {
			do(modelAnswer, i)
		}
		if (call.stage == modelSent || call.stage == modelAnswered) && m.runs(call.client) {
			faulty(modelTimeout, i, m.faults.timeouts)
			if call.slow == 0 {
				faulty(modelSlow, i, m.faults.slows)
			}
		}
	}
	for c := range m.clients {
		m.clientActions(c, do, faulty)
	}
	if m.redis.queue[0] != 0 {
		faulty(modelDelete, 0, m.faults.deletes)
	}
	return all
}

// runs reports whether a client does something.
func (m *protocol) runs(c int8) bool { return m.clients[c].crashed == 0 && m.clients[c].stopped == 0 }

// tickActions let the clock tick if everything is done that does not take a tick. In
// a prompt world a tick ends with the heartbeats, beginning with any client's.
func (m *protocol) tickActions(do func(modelActionKind, int)) {
	if !m.prompt {
		do(modelTick, 0)
		return
	}
	for _, call := range m.calls {
		if call.stage == modelSent && call.slow == 0 || call.stage == modelAnswered && call.slow == 0 && m.runs(call.client) {
			return
		}
	}
	heartbeating := -1
	for c, client := range m.clients {
		if m.runs(int8(c)) && client.inbox[0].owner != 0 {
			return
		}
		if m.runs(int8(c)) && client.open > 0 {
			do(modelTick, c)
			heartbeating = c
		}
	}
	if heartbeating < 0 {
		do(modelTick, 0)
	}
}

func (m *protocol) waiterActions(i int, do func(modelActionKind, int), faulty func(modelActionKind, int, int8)) {
	w, c := &m.waiters[i], m.of[i]
	if c == modelNobody || !m.runs(c) {
		return
	}
	switch {
	case w.phase == modelIdle:
		for j := range i { // alike, so in their order
			if m.of[j] == c && m.waiters[j].phase == modelIdle && m.fixed[j] == m.fixed[i] {
				return
			}
		}
		do(modelLock, i)
	case w.phase == modelHeld:
		do(modelUnlock, i)
		if m.next(w) >= 0 {
			do(modelHandover, i)
		}
		if m.renews && m.fixed[i] == 0 && m.under(modelRenew, c, w.field) == nil {
			do(modelSendRenew, i)
		}
	case w.phase != modelDone:
		faulty(modelCancel, i, m.faults.cancels)
	}
}

func (m *protocol) clientActions(i int, do func(modelActionKind, int), faulty func(modelActionKind, int, int8)) {
	c := &m.clients[i]
	switch {
	case c.crashed > 0:
		return
	case c.stopped > 0:
		do(modelContinue, i)
	default:
		if c.inbox[0].owner != 0 {
			do(modelDeliver, i)
		}
		if c.open > 0 && !m.prompt && m.under(modelHeartbeat, int8(i), 0) == nil {
			do(modelSendHeartbeat, i)
		}
		if m.prompt && m.active(int8(i)) {
			faulty(modelStop, i, m.faults.stops)
		}
	}
	if c.cut > 0 {
		do(modelReconnect, i)
	}
	if m.active(int8(i)) {
		faulty(modelCrash, i, m.faults.crashes)
	}
	if c.open > 0 && c.cut == 0 {
		faulty(modelCut, i, m.faults.cuts)
	}
}

// active reports whether a client has begun something, and not ended all.
func (m *protocol) active(c int8) bool {
	for i, w := range m.waiters {
		if m.of[i] == c && w.phase != modelIdle && w.phase != modelDone {
			return true
		}
	}
	return false
}

func (a modelAction) String() string {
	return fmt.Sprint([]string{
		"tick", "lock", "unlock", "hand over", "cancel", "execute", "answer", "time out", "deliver", "heartbeat", "renew",
		"crash", "cut", "reconnect", "delete queue",
		"slow", "stop", "continue",
	}[a.kind], " ", a.at)
}
