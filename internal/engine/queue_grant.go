package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/seed"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// errReplaced ends a lease after Redis has granted its key to another owner of the same
// locker.
var errReplaced = errs.Lost(watchdog.ErrNotOurs)

// receive handles a message in the inbox of key. It runs on the connection's reader.
func (d *queued) receive(name, message string) {
	if g, ok := scripts.ParseGrant(name, message); ok && d.signed(g.Owner) {
		g.Owner = strings.Clone(g.Owner) // the message may be large
		d.observer.woken(name)
		d.pass(name, scripts.Passed{Grant: g}, true)
	}
}

// pass handles what a reply or a message says about the next holder of key. A grant in a
// message shows that other processes had their turn; a grant in the reply to a call of
// this process comes before all others.
func (d *queued) pass(name string, said scripts.Passed, byMessage bool) {
	s := d.shardOf(name)
	s.Lock()
	defer s.Unlock()
	k := s.keys[name]
	if q := k.queue(); q != nil {
		q.shared = q.shared || byMessage
		if t := q.tickets[said.Grant.Owner]; t != nil && byMessage && d.ConfirmGrants {
			q.toConfirm(t)
		} else {
			q.passed(said)
		}
	} else if g := said.Grant; d.unwanted(k, s, g.Owner) {
		d.cleanUp(name, orphan{g.Owner, max(g.Lease, d.Lease)})
	}
}

// unwanted says whether an owner without a ticket, which Redis has granted a key, has to give
// it back. A late message or reply may also tell of a hold that is known here. An owner that
// did not stand in the queue is of an attempt that is under way or being undone. Close gives
// up all owners. The shard is locked.
func (d *queued) unwanted(k *keyState, s *shard, owner string) bool {
	return owner != "" && !k.heldBy(owner) && !s.closed && d.signed(owner)
}

// passed is pass for a key that has a queue.
func (q *queue) passed(said scripts.Passed) {
	g := said.Grant
	if said.ProbeSoon {
		q.heartbeatAgainSoon()
	} else {
		q.probes = 0
	}
	if g.Owner == "" {
		return
	}
	if said.Ours {
		q.shared = false
	}
	t := q.tickets[g.Owner]
	switch {
	case t == nil:
		if q.in.unwanted(q.key, q.key.shard, g.Owner) { // given up, yet granted
			q.leave(g.Owner, true, g.Lease)
		}
	case g.Lease == 0: // a holder that was only found
		q.toConfirm(t)
	case t.granted:
	case q.key.hold != nil, !q.trusted(t, g): // two grants may arrive in the wrong order
		q.toConfirm(t)
	default:
		q.grant(t, g)
	}
}

// trusted says whether a grant can be relied on without a call. Its lease counts from the
// first attempt of its owner to enter, as Redis cannot have granted it before; no later
// reply moves that.
func (q *queue) trusted(t *ticket, g scripts.Grant) bool {
	return q.in.Replicas == 0 && t.w.terms.plain() && (g.Fence > 0 || !q.in.Fencing) && (time.Since(t.start) < min(g.Lease, q.in.Lease)/2 || seed.TrustFromGrant)
}

// grant makes a waiter the holder.
func (q *queue) grant(t *ticket, g scripts.Grant) {
	w, terms := t.w, Terms{Lease: min(g.Lease, q.in.Lease)}
	if seed.TrustFromGrant {
		t.start = time.Now()
	}
	d := q.in.newHold(q.key, t.owner, terms, t.start, scripts.Acquired{Fence: g.Fence, FenceEnd: g.FenceEnd},
		run{doubt: t.doubt, members: g.Members})
	q.done(t)
	q.key.serve(w, result{lease: q.occupy(d, w)})
}

// occupy makes d the hold of the key and begins its first section, that of w. An old hold is
// lost, as Redis has granted the key to d's owner since.
func (q *queue) occupy(d *hold, w *waiter) *holdfast.Lease {
	if old := q.key.hold; old != nil {
		q.in.revoke(old, errReplaced)
	}
	q.key.hold, q.holder = d, nil
	lease := d.newSection()
	q.in.observer.acquired(&d.section.first, holdfast.ByGrant, w.since)
	return lease
}

// toConfirm ends a wait with a grant that the waiter's goroutine confirms, unless the wait
// has ended so already.
func (q *queue) toConfirm(t *ticket) {
	if t.granted {
		return
	}
	w := t.w
	t.granted, t.lease = true, w.terms.Lease
	t.w, w.ticket = nil, nil
	q.in.calls.Begin() // for confirm or decline
	q.key.serve(w, result{confirm: t})
}

// decline gives up a grant that has not been confirmed. It locks the key.
func (t *ticket) decline() {
	k := t.queue.key
	defer t.queue.in.calls.End()
	k.Lock()
	defer k.Unlock()
	t.queue.drop(t)
}

// confirm asks Redis whether a grant still stands, and sets the lease that the caller
// wants. If it does not stand, the waiter enters again, at the end of the queue. It locks
// the key.
func (t *ticket) confirm(ctx context.Context, w *waiter) (*holdfast.Lease, error) {
	h, k := t.queue.in, t.queue.key
	began, retry := time.Now(), calls.Backoff{}
	lease := w.terms.Lease // the call may outlast the waiter
	for {
		start := time.Now()
		bounded, done := h.calls.ContextFor(ctx)
		said, err := calls.Redis(bounded, h.calls, k.name, func(ctx context.Context) (scripts.Acquired, error) {
			return h.backend.Confirm(ctx, k.name, t.owner, lease)
		})
		err = scripts.Lapse(err)
		done()
		switch {
		case err != nil:
		case !said.OK:
			return t.rejoin(ctx, w)
		case time.Since(start) < lease-watchdog.Margin(lease):
			lease, err := t.confirmed(ctx, w, start, said)
			if err == errOvertaken {
				continue
			}
			return lease, err
		default:
			err = errTooLate
		}
		failed, over := calls.Known(err), ctx.Err() != nil
		if over {
			failed = errs.EndedBy(ctx, failed)
		}
		if over || scripts.OutcomeOf(err).Final() || time.Since(began) >= *h.MaxOutage || k.isClosed() {
			t.decline()
			h.pool.put(w)
			return nil, failed
		}
		calls.Sleep(retry.Next(h.Lease), ctx.Done())
	}
}

// errOvertaken says that a confirmation has to be repeated: another grant came meanwhile,
// so one of the two no longer stands.
var errOvertaken = errors.New("the key was granted to another owner meanwhile")

// confirmed makes the waiter the holder.
func (t *ticket) confirmed(ctx context.Context, w *waiter, start time.Time, said scripts.Acquired) (*holdfast.Lease, error) {
	q, k := t.queue, t.queue.key
	k.Lock()
	if !k.closed && k.hold != nil && k.hold.granted > q.in.calls.Since(start) {
		k.Unlock()
		return nil, errOvertaken
	}
	defer q.in.calls.End()
	defer q.in.pool.put(w)
	if k.closed {
		q.drop(t)
		k.Unlock()
		return nil, holdfast.ErrClosed
	}
	d := q.in.newHold(k, t.owner, w.terms, start, said, run{doubt: t.doubt})
	q.done(t)
	q.tellPlaces() // the end of the wait did, before this place was free
	lease := q.occupy(d, w)
	k.Unlock()
	if ctx.Err() != nil {
		q.in.giveBack(lease)
		return nil, errs.EndedBy(ctx, holdfast.ErrNotAcquired)
	}
	return lease, nil
}

// rejoin lets a waiter enter again after its grant turned out not to stand.
func (t *ticket) rejoin(ctx context.Context, w *waiter) (*holdfast.Lease, error) {
	q, k := t.queue, t.queue.key
	k.Lock()
	q.drop(t)
	q.in.calls.End()
	if k.closed {
		k.Unlock()
		q.in.pool.put(w)
		return nil, holdfast.ErrClosed
	}
	q.enqueue(w) // last here, as in Redis' queue; ask needs one order
	k.Unlock()
	return q.in.await(ctx, k, w)
}

func (s *shard) isClosed() bool {
	s.Lock()
	defer s.Unlock()
	return s.closed
}
