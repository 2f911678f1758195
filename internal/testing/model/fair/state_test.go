package fair_test

import (
	"bytes"
	"slices"
)

const (
	modelWaiters = 4
	modelCalls   = 12 // on their way at once, less
	modelInbox   = 5  // messages on their way to one client, less
	modelLives   = 4  // owners of one waiter
)

// modelPhase is where a waiter stands, a call of Lock and the lease that it
// returns.
type modelPhase int8

const (
	modelIdle       modelPhase = iota // Lock has not been called
	modelAcquiring                    // the first attempt is under way
	modelOutside                      // it has to enter
	modelEntering                     // its enter is not answered
	modelWaiting                      // it is in the queue, as far as it knows
	modelConfirming                   // it was granted the lock, and asks whether it still stands
	modelHeld                         // Lock has returned
	modelDone                         // unlocked, lost, or given up
)

// modelWaiter is a waiter or holder.
type modelWaiter struct {
	phase  modelPhase
	lives  int8                     // owners used up
	owner  modelOwner               // the present one
	age    int8                     // ticks since the first attempt of its enter
	doubt  int8                     // 1: an attempt of its enter was not answered
	trust  int8                     // of the lease: ticks left
	field  modelOwner               // under which it holds in Redis: its own, or that of the first of its run
	rest   [modelMembers]modelOwner // of its run: owners that may be served next
	served [modelMembers]modelOwner // of its run: owners that have been
	fence  int8                     // number of the lease
	last   int8                     // largest number reserved for the hold
	rank   int8                     // among its client's waiters, by their entering
}

// modelClient is a client and its connection for messages.
type modelClient struct {
	crashed int8
	open    int8                   // 1: somebody waits, so that the inbox is subscribed
	cut     int8                   // 1: the subscription is away
	stopped int8                   // 1: it does nothing until it is continued
	fresh   int8                   // ticks since the start of the last heartbeat or enter that was answered
	verify  int8                   // 1: the next heartbeat names all
	ranks   int8                   // given away
	inbox   [modelInbox]modelGrant // in their order; those without an owner are none
}

// modelStage is how far a call is.
type modelStage int8

const (
	modelSent     modelStage = iota + 1 // on its way to Redis
	modelAnswered                       // done; its reply is on its way
	modelLate                           // given up by its client, but it may still reach Redis
)

// modelCall is one attempt of a call on its way.
type modelCall struct {
	stage   modelStage
	attempt int8 // 1, or 2 for all that repeat
	age     int8 // ticks since its start
	slow    int8 // 1: it takes ticks
	modelRequest
	reply modelReply
}

// modelFaults are how many of each may still happen, and of all together.
type modelFaults struct {
	all, slows, stops, timeouts, cuts, crashes, cancels, deletes int8
}

// modelState is all that there is at one moment.
type modelState struct {
	redis   modelRedis
	waiters [modelWaiters]modelWaiter
	clients [modelClients]modelClient
	calls   [modelCalls]modelCall // sorted; those without a stage are none
	faults  modelFaults

	// What the checks remember.
	order  [modelQueue]modelOwner // of those in the queue, by their first entering
	passed modelSet               // passed over, undelivered, when the present hold was granted
	ended  modelSet               // whose release or leave was answered: they must not be seen again
	used   int8                   // largest fence number of a lease
}

// believes reports whether w holds a lease that is alive.
func (w *modelWaiter) believes() bool { return w.phase == modelHeld && w.trust > 0 }

// waits reports whether w needs the inbox.
func (w *modelWaiter) waits() bool { return w.phase >= modelOutside && w.phase <= modelConfirming }

// finish ends w's story.
func (w *modelWaiter) finish() { *w = modelWaiter{phase: modelDone} }

// push puts a grant into the client's inbox.
func (c *modelClient) push(g modelGrant) {
	for i := range c.inbox {
		if c.inbox[i].owner == 0 {
			c.inbox[i] = g
			return
		}
	}
	panic("model: inbox is too small")
}

func (c *modelClient) pop() modelGrant {
	g := c.inbox[0]
	copy(c.inbox[:], c.inbox[1:])
	c.inbox[len(c.inbox)-1] = modelGrant{}
	return g
}

// add puts a call on its way.
func (s *modelState) add(call modelCall) {
	for i := range s.calls {
		if s.calls[i].stage == 0 {
			s.calls[i] = call
			return
		}
	}
	panic("model: too many calls")
}

// sort makes states equal that differ only in the order of the calls.
func (s *modelState) sort() {
	n := 0
	for _, call := range s.calls {
		if call.stage != 0 {
			s.calls[n] = call
			n++
		}
	}
	clear(s.calls[n:])
	slices.SortFunc(s.calls[:n], func(a, b modelCall) int {
		x, y := a.key(), b.key()
		return bytes.Compare(x[:], y[:])
	})
}

// key is what tells calls apart that may be under way together.
func (c *modelCall) key() [14]byte {
	return [14]byte{
		byte(c.kind), byte(c.client), byte(c.owners[0]), byte(c.owners[1]), byte(c.owners[2]),
		byte(c.stage), byte(c.attempt), byte(c.stones), byte(c.lease), byte(c.age), byte(c.used), byte(c.reply.grant.owner), byte(c.slow), byte(c.polls),
	}
}

// under looks for a call of a kind that its client awaits and that names owner; 0
// is any.
func (s *modelState) under(kind modelKind, client int8, owner modelOwner) *modelCall {
	for i := range s.calls {
		call := &s.calls[i]
		if call.kind == kind && call.client == client && call.stage != modelLate && call.stage != 0 &&
			(owner == 0 || slices.Contains(call.owners[:], owner)) {
			return call
		}
	}
	return nil
}
