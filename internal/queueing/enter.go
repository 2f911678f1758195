package queueing

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// enter makes one attempt to put owners into Redis' queue. After a failure they try again
// as the same owners: an owner enters once, however often its call is repeated. The attempt
// ends well before a grant lease would, as Redis may grant the key to an owner before the
// answer comes. It takes the key's mutex.
func (q *queue) enter(ctx context.Context, list []*ticket) {
	k, start, owners := q.key, time.Now(), make([]string, len(list))
	k.Lock()
	for i, t := range list {
		owners[i] = t.owner
		if t.start.IsZero() {
			t.start = start
		}
	}
	k.Unlock()
	reply, err := calls.Detached(ctx, q.engine.Calls, k.Name, func(ctx context.Context) (wire.EnterReply, error) {
		return q.backend.Enter(ctx, k.Name, owners...)
	})
	q.engine.ObserveCall(ctx, k.Name, err)
	gaveUp := err != nil && ctx.Err() == context.Canceled
	err = q.engine.Calls.Public(err)
	if !gaveUp {
		q.engine.Calls.Note(k.Name, err)
	}

	k.Lock()
	defer k.Unlock()
	q.entering--
	if len(q.outside) > 0 || gaveUp {
		loop.Poke(q.poke)
	}
	if gaveUp { // which says nothing about Redis: the waiter that made the call is about to leave
		q.due = time.Now() // Redis may have granted the key to another waiter here
		for _, t := range list {
			t.doubt = true
		}
		return
	}
	err = k.NoteResult(err)
	q.outage, q.enterOutage = q.outage.Note(start, err), q.enterOutage.Note(start, err)
	if err != nil {
		q.enterFailed(list, err)
		return
	}
	q.onEnterReply(reply, start, list)
}

func (q *queue) onEnterReply(reply wire.EnterReply, start time.Time, list []*ticket) {
	q.retry = loop.Backoff{}
	if time.Since(start) > q.config.WaiterTTL/2 {
		q.verify, q.due = true, time.Now()
	}
	q.aliveAt = start
	for i, t := range list {
		q.noteState(t, reply.States[i])
		t.ahead = reply.Ahead
		if reply.Java && t.w != nil {
			q.awaitJava(t)
		}
	}
	q.notePlaces(list, reply)
	if !q.key.Closed() {
		q.startHeartbeats()
	}
	if reply.Grant.Lease > 0 {
		q.foreign = false
	}
	q.noteGrant(wire.FairReply{HeartbeatSoon: reply.HeartbeatSoon, Grant: reply.Grant})
}

// Enter makes the first attempt of a waiter that enters by itself.
func (t *ticket) Enter(ctx context.Context) {
	q := t.queue
	defer q.engine.Calls.End()
	bounded, done := q.brief.ContextFor(ctx)
	defer done()
	q.enter(bounded, []*ticket{t})
}

func (q *queue) noteState(t *ticket, state wire.OwnerState) {
	if t.w == nil { // already granted or given up
		return
	}
	switch state {
	case wire.Waiting:
		t.entered = true
	case wire.Holding:
		t.entered = true
		q.toConfirm(t, wire.Grant{})
	case wire.Gone:
		q.requeue(t)
	}
}

// enterFailed puts the waiters of a failed call back in front, and ends overdue waits.
func (q *queue) enterFailed(list []*ticket, err error) {
	waiting := make([]*ticket, 0, len(list)+len(q.outside))
	for _, t := range list {
		if t.w == nil {
			continue
		}
		if wire.OutcomeOf(err).MayHaveRun() {
			t.doubt = true
		} else if !t.doubt {
			delete(q.tickets, t.owner) // definitely not there
		}
		waiting = append(waiting, t)
	}
	q.outside = append(waiting, q.outside...)
	q.pause = time.Now().Add(q.retry.Within(q.engine.Lease))
	q.endOverdue(err)
	loop.Poke(q.poke)
}

// leaveAll makes one attempt to give up owners. It takes the key's mutex.
func (q *queue) leaveAll(list []leaver) {
	k, start := q.key, time.Now()
	leave := wire.LeaveRequest{Key: k.Name}
	for _, l := range list {
		if l.doubt {
			leave.InDoubt = append(leave.InDoubt, l.owner)
		} else {
			leave.Others = append(leave.Others, l.owner)
		}
	}
	reply, err := engine.Call(q.engine.Calls.Context(), q.engine, k.Name, func(ctx context.Context) (wire.FairReply, error) {
		return q.backend.Leave(ctx, leave)
	})
	k.Lock()
	again := q.onLeaveReply(reply, start, err, list)
	q.leaving = append(again, q.leaving...)
	q.left = len(again) == 0
	k.Unlock()
	switch left := len(list) - len(again); {
	case err == nil || left == 0 || errors.Is(err, holdfast.ErrWrongType): // the lock is something else, but they have left
	case wire.OutcomeOf(err).Final() && !wire.Permanent(err): // they do not hold up any that enter
		for _, l := range list {
			q.engine.Undo(&engine.Orphan{Name: k.Name, Owner: l.owner, Lease: time.Until(l.until), Err: err})
		}
	default:
		q.engine.MayRemain(k.Name, err)
		q.engine.Logger.Warn("holdfast: owners could not leave the queue; they give up their turn when it comes",
			"key", errs.Quote(q.engine.KeyOf(k.Name)), "owners", left, "error", err)
	}
}

// onLeaveReply handles the reply to leaveAll. It returns the owners for which the call must be
// repeated.
func (q *queue) onLeaveReply(reply wire.FairReply, start time.Time, err error, list []leaver) (again []leaver) {
	switch wire.OutcomeOf(err) {
	case wire.Done:
		q.retry = loop.Backoff{}
		if !q.wanting() { // no other call would show that the outage has ended
			q.enterOutage, q.outage = nil, nil
		}
		q.noteGrant(reply)
		return nil
	case wire.Refused:
		return nil
	case wire.Doubtful:
		q.due = time.Now() // Redis may have granted the key to a waiter here
		return nil
	case wire.Unknown:
		q.due = time.Now()
	}
	q.pause = time.Now().Add(q.retry.Within(q.engine.Lease))
	q.outage, q.enterOutage = q.outage.Note(start, err), q.enterOutage.Note(start, err) // the loop lets no waiter enter before it succeeds
	q.endOverdue(err)
	if q.engine.Calls.CloseTimedOut() { // Close has ended
		return nil
	}
	return slices.DeleteFunc(list, func(l leaver) bool { return time.Now().After(l.until) })
}
