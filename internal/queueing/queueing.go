package queueing

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Config configures the queues of an engine.
type Config struct {
	WaiterTTL     time.Duration // how long waiters keep their places without a heartbeat
	GrantLease    time.Duration // of their grants
	ConfirmGrants bool          // they rely on no message without a call
}

// discipline is how waiters stand in a queue in Redis.
type discipline struct {
	engine     *engine.Engine // immutable
	config     Config         // immutable
	backend    Backend        // the engine's; immutable
	brief      calls.Bounds   // of enters and heartbeats
	secret     [16]byte       // for sign; immutable
	heartbeats heartbeats
}

// New returns an engine whose waiters stand in a queue in Redis. It makes no call to Redis.
// Close it when it is no longer used.
func New(backend Backend, c engine.Config, own Config) *engine.Engine {
	return newDiscipline(backend, c, own).engine
}

func newDiscipline(backend Backend, c engine.Config, own Config) *discipline {
	d := &discipline{config: own, backend: backend}
	_, _ = rand.Read(d.secret[:]) // never fails
	d.heartbeats.queues = make(map[string]map[*queue]struct{})
	c.Places, c.Holds = true, engine.OneHold // a grant is to one holder: see noteGrant
	d.engine = engine.New(backend, d, c)
	d.brief.Base = d.engine.Calls.Base
	d.brief.Timeout = min(max(own.WaiterTTL/3, 100*time.Millisecond), d.engine.Calls.Timeout)
	return d
}

// open returns the queue of k, made if need be, with a ticket for w. The stripe is not
// closed.
func (d *discipline) open(k *engine.Key, w *engine.Waiter) (*queue, *ticket) {
	q := queueOf(k)
	if q == nil {
		now := time.Now()
		q = &queue{
			discipline: d, key: k, poke: make(chan struct{}, 1), patience: now.Add(time.Second), refreshed: now,
			tickets: make(map[string]*ticket),
		}
		q.inbox = d.backend.Listen(k.Name, d.engine.LockerID, func(message string) { d.receive(k.Name, message) })
		k.SetState(q)
		d.engine.Calls.Background(q.loop)
	}
	return q, q.newTicket(w)
}

// Join lets a waiter enter: on its own goroutine if it is the only one, otherwise together
// with the others.
func (d *discipline) Join(k *engine.Key, w *engine.Waiter) engine.Ticket {
	q, t := d.open(k, w)
	now := time.Now()
	if !q.ready || len(q.outside) > 0 || q.entering > 0 && d.engine.LocalHandover > 0 || now.Before(q.pause) || q.lingering(now) {
		q.outside = append(q.outside, t)
		loop.Poke(q.poke)
		return nil
	}
	q.lingerFrom = time.Time{}
	q.entering++
	d.engine.Calls.Begin()
	q.register(t)
	return t
}

// JoinFirst lets the caller of a first attempt enter, before later callers.
func (d *discipline) JoinFirst(k *engine.Key, w *engine.Waiter, a engine.Attempt) {
	q, t := d.open(k, w)
	q.outside = append([]*ticket{t}, q.outside...)
	q.outage, q.why = q.outage.Note(a.Start, k.NoteResult(a.Err)), a.Why
	if a.Orphan != nil {
		q.leave(a.Orphan.Owner, true, a.Orphan.Lease)
	}
	loop.Poke(q.poke)
}

func (d *discipline) WaiterLeft(_ *engine.Key, w *engine.Waiter) {
	if t := ticketOf(w); t != nil {
		t.queue.served = time.Time{}
		t.queue.drop(t)
	}
}

func (d *discipline) WaitError(k *engine.Key, w *engine.Waiter) error {
	switch q := queueOf(k); {
	case q != nil && q.outage != nil:
		return q.outage.Err
	case q != nil && q.enterOutage != nil && w != nil && ticketOf(w) != nil && !ticketOf(w).entered:
		return q.enterOutage.Err
	case q != nil && q.why != nil && !k.Held():
		return q.why
	}
	return k.NotAcquired()
}

// Release gives the key to the next waiter.
func (d *discipline) Release(ctx context.Context, h *engine.Hold, lastFence int64) (wire.ReleaseReply, error) {
	doubt, served := runOf(h).report()
	reply, err := d.backend.Release(ctx, wire.FairReleaseRequest{
		ReleaseRequest: wire.ReleaseRequest{Key: h.Key.Name, Owner: h.Owner, LastFence: lastFence, Doubt: doubt}, Served: served,
	})
	switch wire.OutcomeOf(err) {
	case wire.Done:
		d.routeGrant(h.Key.Name, reply, false)
	case wire.Unknown, wire.Doubtful:
		d.heartbeatSoon(h.Key) // Redis may have granted the key to a waiter here
	}
	return wire.ReleaseReply{Ours: reply.Ours}, err
}

// GiveUp is queue.leave for an owner that no queue knows.
func (d *discipline) GiveUp(ctx context.Context, name, owner string) error {
	reply, err := d.backend.Leave(ctx, wire.LeaveRequest{Key: name, InDoubt: []string{owner}})
	if err == nil {
		d.routeGrant(name, reply, false)
	}
	return err
}

// BeforeRelease ends the linger of those outside if no other waiter of this process is queued.
func (d *discipline) BeforeRelease(k *engine.Key) {
	if q := queueOf(k); q != nil && !q.lingerFrom.IsZero() && len(q.tickets) < 2 {
		loop.Poke(q.poke)
	}
}

func (d *discipline) AfterRelease(*engine.Key, wire.ReleaseReply) {}

func (d *discipline) Settle(k *engine.Key) {
	if q := queueOf(k); q != nil { // its end settles the key
		if k.Closed() {
			loop.Poke(q.poke)
		}
	} else if k.Idle() && !k.Releasing() {
		k.Drop()
	}
}
