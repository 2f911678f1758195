package fair_test

import "slices"

// protocol is a state and the world it is in. Its methods are the steps of the
// clients, by the rules of the protocol.
type protocol struct {
	*modelWorld
	modelState
	broken   string                // the property that the last step has broken
	leases   int                   // that have begun
	spent    bool                  // somebody gave up for want of another owner
	did      [modelActionKinds]int // times each kind of action was taken
	progress *modelProgress        // nil: turns are not looked after
}

// modelWorld is what does not change in a search.
type modelWorld struct {
	modelRules
	name   string
	of     [modelWaiters]int8 // the client of each waiter; modelNobody: there is no such waiter
	lease  [modelClients]int8 // of the renewed leases of each client
	fixed  [modelWaiters]int8 // fixed lease that the waiter asks for; 0: a renewed one
	tries  bool               // a waiter that finds none of its client tries first
	renews bool               // holders renew
	prompt bool               // nothing takes a tick unless it is slow or its client is stopped, and clients heartbeat with each
	most   int8               // owners of a waiter before it gives up
	budget modelFaults
}

func (x *modelWorld) waiterOf(o modelOwner) int { return int(o-1) / modelLives }

func (x *modelWorld) owner(w int, life int8) modelOwner {
	return modelOwner(w*modelLives) + modelOwner(life) + 1
}

// asked is the lease that a waiter wants.
func (x *modelWorld) asked(w int) int8 {
	if x.fixed[w] > 0 {
		return x.fixed[w]
	}
	return x.lease[x.of[w]]
}

func (m *protocol) send(q modelRequest, attempt int8) {
	m.add(modelCall{stage: modelSent, attempt: attempt, modelRequest: q})
}

// lock is a call of Lock.
func (m *protocol) lock(i int) {
	w, c := &m.waiters[i], m.of[i]
	w.owner, w.lives = m.owner(i, 0), 1
	if m.tries && m.clients[c].open == 0 {
		w.phase = modelAcquiring
		m.send(modelRequest{kind: modelAcquire, client: c, owners: modelOne(w.owner), lease: m.asked(i)}, 1)
		return
	}
	w.phase = modelOutside
}

func modelOne(o modelOwner) [modelNamed]modelOwner { return [modelNamed]modelOwner{o} }

// enterAll lets the waiters of a client enter together, if it has no enter under way.
func (m *protocol) enterAll(c int8) {
	if m.under(modelEnter, c, 0) != nil {
		return
	}
	q, n := modelRequest{kind: modelEnter, client: c}, 0
	for i := range m.waiters {
		w := &m.waiters[i]
		if m.of[i] == c && w.phase == modelOutside && n < modelNamed {
			w.phase, w.age, w.doubt = modelEntering, 0, 0
			w.rank = m.clients[c].ranks
			m.clients[c].ranks++
			q.owners[n] = w.owner
			n++
		}
	}
	if n > 0 {
		m.send(q, 1)
	}
}

// leave gives up an owner.
func (m *protocol) leave(c int8, o modelOwner, stone int8) {
	for _, kind := range []modelKind{modelLeave, modelRelease} {
		if call := m.under(kind, c, o); call != nil && call.owners[0] == o && call.stage == modelSent && call.stones >= stone {
			return // in hand
		}
	}
	m.send(modelRequest{kind: modelLeave, client: c, owners: modelOne(o), stones: stone}, 1)
}

// again lets a waiter that has lost its place enter with a new owner.
func (m *protocol) again(i int) {
	w := &m.waiters[i]
	m.drop(i)
	if w.lives >= m.most {
		w.finish()
		m.spent = true
		return
	}
	if !m.mistakes.ownersAgain {
		w.owner = m.owner(i, w.lives)
	}
	w.lives++
	*w = modelWaiter{phase: modelOutside, lives: w.lives, owner: w.owner}
}

// drop gives up a waiter's present owner.
func (m *protocol) drop(i int) {
	w := &m.waiters[i]
	stone := w.doubt
	if m.under(modelEnter, m.of[i], w.owner) != nil && w.phase == modelEntering {
		stone = 1
	}
	m.leave(m.of[i], w.owner, stone)
}

// cancel ends a wait.
func (m *protocol) cancel(i int) {
	w := &m.waiters[i]
	if w.phase != modelOutside && w.phase != modelAcquiring {
		m.drop(i)
	}
	w.finish()
}

// hear takes in a grant: by a message, or in the reply of a call. since is how
// long ago the call began.
func (m *protocol) hear(c int8, g modelGrant, kind modelKind, since int8) {
	if g.owner == 0 {
		return
	}
	i := m.waiterOf(g.owner)
	w := &m.waiters[i]
	switch {
	case w.owner == g.owner && (w.phase == modelHeld || w.phase == modelConfirming):
	case w.owner == g.owner && (w.phase == modelWaiting || w.phase == modelEntering):
		m.granted(i, g, kind, since)
	case m.leads(g.owner):
	case g.lease > 0:
		m.leave(c, g.owner, 1) // what is known of it no more is whether all its calls were answered
	}
}

// leads reports whether o's hold is in use by a member of its run.
func (m *protocol) leads(o modelOwner) bool {
	return slices.ContainsFunc(m.waiters[:], func(w modelWaiter) bool { return w.phase == modelHeld && w.field == o })
}

// granted is a grant to a waiter that waits for it.
func (m *protocol) granted(i int, g modelGrant, kind modelKind, since int8) {
	w, c := &m.waiters[i], m.of[i]
	trust := m.first - w.age
	believe := g.lease > 0 && (g.fence > 0 || !m.fences) && 2*w.age <= m.first && m.fixed[i] == 0 &&
		(m.first <= m.lease[c] || m.mistakes.longRenewal)
	if moved := m.mistakes.heartbeatMovesTrust && kind == modelHeartbeat || m.mistakes.enterMovesTrust && kind == modelEnter; moved && g.lease == 0 {
		trust = m.first - since
		believe = trust > 0
	}
	if believe {
		m.hold(i, w.owner, trust, g.fence, g.fenceEnd, g.members)
		return
	}
	w.phase, w.rest = modelConfirming, g.members
	m.send(modelRequest{kind: modelConfirm, client: c, owners: modelOne(w.owner), lease: m.asked(i), used: g.fence}, 1)
}

// hold begins a lease.
func (m *protocol) hold(i int, field modelOwner, trust, fence, last int8, rest [modelMembers]modelOwner) {
	w := &m.waiters[i]
	*w = modelWaiter{phase: modelHeld, lives: w.lives, owner: w.owner, doubt: w.doubt,
		field: field, trust: trust, fence: fence, last: last, rest: rest}
	m.leases++
	m.checkLease(i)
}

// next is the next of the run that may be served in the hold that w ends; -1 if there is
// none.
func (m *protocol) next(w *modelWaiter) int {
	if m.fences && w.fence >= w.last || !w.believes() {
		return -1
	}
	for _, o := range w.rest {
		i := m.waiterOf(o)
		if o == 0 || m.waiters[i].owner != o {
			continue // it has left
		}
		n := &m.waiters[i]
		if n.phase != modelWaiting || n.doubt > 0 && !m.mistakes.runServesDoubt || m.fixed[i] > 0 {
			return -1
		}
		return i
	}
	return -1
}

// handover ends w's lease and begins that of the next of its run.
func (m *protocol) handover(i int) {
	w := m.waiters[i]
	n := m.next(&w)
	m.waiters[i].finish()
	owner := m.waiters[n].owner
	at := slices.Index(w.rest[:], owner)
	var rest [modelMembers]modelOwner
	copy(rest[:], w.rest[at+1:])
	doubt := w.doubt
	m.hold(n, w.field, w.trust, w.fence+1, w.last, rest)
	m.waiters[n].doubt = doubt // from now on that of the hold's owner
	m.waiters[n].served = w.served
	for j, o := range w.served {
		if o == 0 {
			m.waiters[n].served[j] = owner
			break
		}
	}
}

// unlock ends a lease and its hold.
func (m *protocol) unlock(i int) {
	w := m.waiters[i]
	q := modelRequest{kind: modelRelease, client: m.of[i], owners: modelOne(w.field), stones: w.doubt}
	copy(q.owners[1:], w.served[:])
	if w.fence < w.last {
		q.used = w.fence
	}
	m.waiters[i].finish()
	m.send(q, 1)
}
