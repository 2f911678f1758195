package queueing

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// receive handles a message in the inbox of key. It runs on the connection's reader.
func (d *discipline) receive(name, message string) {
	if g, ok := wire.ParseGrant(name, message); ok && d.signed(g.Owner) {
		g.Owner = strings.Clone(g.Owner) // the message may be large
		d.engine.Woken(name)
		d.routeGrant(name, wire.FairReply{Grant: g}, true)
	}
}

// routeGrant handles what a reply or a message says about the next holder of key. A grant in a
// message shows that other processes had their turn (queue.foreign); a grant in the reply to a
// release of this process shows that none had, see noteGrant.
func (d *discipline) routeGrant(name string, reply wire.FairReply, byMessage bool) {
	d.engine.With(name, func(k *engine.Key) {
		if q := queueOf(k); q != nil {
			q.foreign = q.foreign || byMessage
			if t := q.tickets[reply.Grant.Owner]; t != nil && byMessage && d.config.ConfirmGrants {
				q.toConfirm(t, wire.Grant{})
			} else {
				q.noteGrant(reply)
			}
		} else if g := reply.Grant; d.unwanted(k, g.Owner) {
			d.engine.Undo(&engine.Orphan{Name: name, Owner: g.Owner, Lease: max(g.Lease, d.engine.Lease)})
		}
	})
}

// unwanted reports whether an owner without a ticket, to which Redis has granted a key, must
// give it back. A late message or reply may also report a hold that is known here. An owner that
// was not in the queue belongs to an attempt that is under way or being undone.
func (d *discipline) unwanted(k *engine.Key, owner string) bool {
	return owner != "" && !k.HeldBy(owner) && d.signed(owner)
}

// noteGrant notes in the queue of a key what a reply or a message says about the next holder.
func (q *queue) noteGrant(reply wire.FairReply) {
	g := reply.Grant
	if reply.HeartbeatSoon {
		q.heartbeatAgainSoon()
	} else {
		q.early = 0
	}
	if g.Owner == "" {
		return
	}
	if reply.Ours {
		q.foreign = false
	}
	t := q.tickets[g.Owner]
	switch {
	case t == nil:
		if !q.key.Closed() && q.unwanted(q.key, g.Owner) { // given up, yet granted; Close gives up all owners
			q.leave(g.Owner, true, g.Lease)
		}
	case t.confirming:
	case g.Lease == 0, // a holder that was only found
		q.key.Held(), // two grants may arrive in the wrong order
		!q.trusted(t, g):
		q.toConfirm(t, g)
	default:
		q.grant(t, g)
	}
}

// trusted reports whether the locker can rely on a grant without a call. Its lease counts
// from the first attempt of its owner to enter, as Redis cannot have granted it before; no
// later reply moves that.
func (q *queue) trusted(t *ticket, g wire.Grant) bool {
	e := q.engine
	return time.Since(t.start) < g.Lease/2 &&
		g.Lease <= e.Lease && // otherwise Redis would keep the key of a holder that dies for longer than its lease
		e.Replicas == 0 && // otherwise the confirmation waits for them
		t.w.Terms.Default() && // the grant has the lease and the label of the locker, not those of the call
		(g.Fence > 0 || !e.Fencing) // if Redis could not count, the confirmation says why
}

func (q *queue) grant(t *ticket, g wire.Grant) {
	w, terms := t.w, engine.Terms{Lease: g.Lease}
	q.key.Serve(w, q.adoptGrant(t, w, terms, t.start, wire.AcquireReply{Fence: g.Fence, FenceEnd: g.FenceEnd}, g.Members...))
}

// adoptGrant makes the owner of a ticket the holder, for w. members may follow in its run.
func (q *queue) adoptGrant(t *ticket, w *engine.Waiter, terms engine.Terms, start time.Time, reply wire.AcquireReply, members ...string) *holdfast.Lease {
	var state any
	if t.doubt || len(members) > 0 {
		state = &run{doubt: t.doubt, members: members}
	}
	h := q.engine.NewHold(q.key, t.owner, terms, start, reply, state)
	q.done(t)
	q.why = nil
	return q.engine.AdoptGrant(h, w)
}

// toConfirm ends a wait with a grant that the waiter's goroutine confirms, unless the wait
// has already ended that way.
func (q *queue) toConfirm(t *ticket, g wire.Grant) {
	if t.confirming {
		return
	}
	w := t.w
	t.confirming, t.lease, t.grant = true, w.Terms.Lease, g
	t.w, w.State = nil, nil
	q.key.Offer(w, t)
}

// Decline gives up a grant that has not been confirmed. It takes the key's mutex.
func (t *ticket) Decline() {
	k := t.queue.key
	k.Lock()
	defer k.Unlock()
	t.queue.drop(t)
}

// Confirm asks Redis whether a grant still stands, and sets the lease and the label that the caller wants. If it
// does not, the waiter enters again, at the end of the queue. It takes the key's mutex.
func (t *ticket) Confirm(ctx context.Context, w *engine.Waiter) (*holdfast.Lease, error) {
	q, k := t.queue, t.queue.key
	ask := wire.AcquireRequest{Key: k.Name, Owner: t.owner, Lease: w.Terms.Lease, Label: w.Terms.Label} // the call may outlast the waiter
	doubt := false
	for !t.declinedByClose() {
		start, reply := time.Time{}, wire.AcquireReply{}
		err := q.engine.RideOut(ctx, true, func(ctx context.Context) (err error) {
			start = time.Now()
			reply, err = engine.Call(ctx, q.engine, k.Name, func(ctx context.Context) (wire.AcquireReply, error) {
				return q.backend.Confirm(ctx, ask, t.grant)
			})
			doubt = doubt || wire.OutcomeOf(err).MayHaveRun()
			if err == nil && reply.OK && time.Since(start) >= ask.Lease-watchdog.Margin(ask.Lease) {
				return engine.ErrTooLate
			}
			return wire.AsLapsed(err)
		})
		switch {
		case err != nil:
			t.Decline()
			return nil, err
		case !reply.OK:
			return nil, t.rejoin(w)
		}
		if held := t.confirmed(w, start, reply, doubt); held != nil {
			return held, nil
		}
	}
	return nil, holdfast.ErrClosed
}

// declinedByClose reports whether Close has ended all waits. Then the grant is given up.
func (t *ticket) declinedByClose() bool {
	k := t.queue.key
	k.Lock()
	defer k.Unlock()
	if k.Closed() {
		t.queue.drop(t)
	}
	return k.Closed()
}

// confirmed makes the waiter the holder. It returns nil after Close, or if another grant has
// come: then one of the two no longer stands. With doubt, an earlier attempt may still arrive, and Redis
// then has the key for longer than we trust it.
func (t *ticket) confirmed(w *engine.Waiter, start time.Time, reply wire.AcquireReply, doubt bool) *holdfast.Lease {
	q, k := t.queue, t.queue.key
	k.Lock()
	defer k.Unlock()
	if k.Closed() || k.HeldSince(start) {
		return nil
	}
	t.doubt = t.doubt || doubt
	return q.adoptGrant(t, w, w.Terms, start, reply, t.grant.Members...)
}

// rejoin lets a waiter enter again after its grant turned out not to stand.
func (t *ticket) rejoin(w *engine.Waiter) error {
	q, k := t.queue, t.queue.key
	k.Lock()
	defer k.Unlock()
	q.drop(t)
	if k.Closed() {
		return holdfast.ErrClosed
	}
	q.enqueue(w) // last here, as in Redis' queue; nextHeartbeats needs one order
	return nil
}
