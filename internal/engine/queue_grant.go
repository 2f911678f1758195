package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
	"github.com/holdfast-go/holdfast/watchdog"
)

// errReplaced is why a lease ends when Redis has granted its key to another owner of the
// same locker.
var errReplaced = lost(watchdog.ErrNotOurs)

// receive takes in a message of the inbox of key. It runs on the reader of the
// connection.
func (d *queued) receive(key, message string) {
	if g, ok := d.backend.ParseGrant(key, message); ok {
		d.pass(key, scripts.Passed{Grant: g}, true)
	}
}

// pass takes in what a call, or a message, says about the next holder of key. A grant
// that comes by a message shows that others had their turn: one that comes with the
// answer to a call of this process comes before all others.
func (d *queued) pass(key string, said scripts.Passed, byMessage bool) {
	s := d.shardOf(key)
	s.Lock()
	defer s.Unlock()
	k := s.keys[key]
	if q := k.queue(); q != nil {
		q.shared = q.shared || byMessage
		q.passed(said)
	} else if g := said.Grant; g.Lease > 0 && !k.heldBy(g.Owner) && !s.closed {
		d.cleanUp(key, orphan{g.Owner, g.Lease})
	}
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
	case g.Lease == 0: // only found: an owner without a ticket is in hand, or its hold will expire
		if t != nil {
			q.found(t)
		}
	case t == nil:
		if !q.key.heldBy(g.Owner) && !q.key.closed { // it may have been found to hold the key before its grant came
			q.leave(g.Owner, true) // given up, yet granted
		}
	case t.granted:
	case q.key.hold != nil, !q.trusted(t, g): // of two grants, the one received first may be the later
		q.toConfirm(t)
	default:
		q.grant(t, g)
	}
}

// trusted says whether a grant can be relied on without a call. It is trusted from the
// first attempt of its owner to enter, before which it cannot have been made, and no later
// reply moves that.
func (q *queue) trusted(t *ticket, g scripts.Grant) bool {
	return t.w.terms.plain() && (g.Fence > 0 || !q.in.Fencing) && time.Since(t.start) < min(g.Lease, q.in.Lease)/2
}

// grant makes a waiter the holder.
func (q *queue) grant(t *ticket, g scripts.Grant) {
	w, terms := t.w, Terms{Lease: min(g.Lease, q.in.Lease)}
	d := q.in.newHold(q.key, t.owner, terms, t.start, scripts.Acquired{Fence: g.Fence, FenceEnd: g.FenceEnd},
		run{doubt: t.doubt, members: g.Members})
	q.done(t)
	q.key.serve(w, result{lease: q.occupy(d)})
}

// occupy makes d the hold of the key and begins its first section. A hold that is still
// there is another's in Redis: it was lost.
func (q *queue) occupy(d *hold) *holdfast.Lease {
	if old := q.key.hold; old != nil {
		q.in.revoke(old, errReplaced)
	}
	q.key.hold = d
	return d.newSection()
}

// found takes in that the owner of a ticket holds the key, of which nothing else is known.
func (q *queue) found(t *ticket) {
	if !t.granted {
		q.toConfirm(t)
	}
}

// toConfirm ends a wait with a grant that the waiter's goroutine has to confirm.
func (q *queue) toConfirm(t *ticket) {
	w := t.w
	t.granted = true
	t.w, w.ticket = nil, nil
	q.in.calls.work.Add(1) // for confirm or decline
	q.key.serve(w, result{confirm: t})
}

// decline gives up a grant that nobody wants to confirm any more. It locks the key.
func (t *ticket) decline() {
	k := t.queue.key
	defer t.queue.in.calls.work.Done()
	k.Lock()
	defer k.Unlock()
	t.queue.drop(t)
}

// confirm asks whether a grant still stands, and sets the lease that was asked for. If
// it does not stand, the waiter enters again, at the end of the queue. It locks the key.
func (t *ticket) confirm(ctx context.Context, w *waiter) (*holdfast.Lease, error) {
	h, k := t.queue.in, t.queue.key
	began, retry := time.Now(), backoff{}
	lease := w.terms.Lease // the call may outlast the waiter
	for {
		start := time.Now()
		bounded, done := h.calls.contextFor(ctx)
		said, err := redis(bounded, h.calls, func(ctx context.Context) (scripts.Acquired, error) {
			return h.backend.Confirm(ctx, k.name, t.owner, lease)
		})
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
		failed, over := known(err), ctx.Err() != nil
		if over {
			failed = endedBy(ctx, failed)
		}
		if over || scripts.OutcomeOf(err) == scripts.Refused || time.Since(began) >= *h.MaxOutage || k.isClosed() {
			t.decline()
			w.free()
			return nil, failed
		}
		sleep(retry.next(h.Lease), ctx.Done())
	}
}

// errOvertaken is why a confirmation has to be asked for again: meanwhile another grant
// came, so that one of the two has been forced out.
var errOvertaken = errors.New("another was granted the key meanwhile")

// confirmed makes the waiter the holder.
func (t *ticket) confirmed(ctx context.Context, w *waiter, start time.Time, said scripts.Acquired) (*holdfast.Lease, error) {
	q, k := t.queue, t.queue.key
	k.Lock()
	if !k.closed && k.hold != nil && k.hold.granted > start.Sub(q.in.calls.epoch) {
		k.Unlock()
		return nil, errOvertaken
	}
	defer q.in.calls.work.Done()
	defer w.free()
	if k.closed {
		q.drop(t)
		k.Unlock()
		return nil, holdfast.ErrClosed
	}
	d := q.in.newHold(k, t.owner, w.terms, start, said, run{doubt: t.doubt})
	q.done(t)
	lease := q.occupy(d)
	k.Unlock()
	if ctx.Err() != nil {
		q.in.giveBack(lease)
		return nil, endedBy(ctx, holdfast.ErrNotAcquired)
	}
	return lease, nil
}

// rejoin has a waiter whose grant does not stand any more enter again.
func (t *ticket) rejoin(ctx context.Context, w *waiter) (*holdfast.Lease, error) {
	q, k := t.queue, t.queue.key
	k.Lock()
	q.drop(t)
	q.in.calls.work.Done()
	if k.closed {
		k.Unlock()
		w.free()
		return nil, holdfast.ErrClosed
	}
	q.enqueue(w) // in the order of Redis' queue, see oldest
	k.Unlock()
	return q.in.await(ctx, k, w)
}

func (s *shard) isClosed() bool {
	s.Lock()
	defer s.Unlock()
	return s.closed
}
