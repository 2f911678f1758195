package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
)

// Events go to a [holdfast.Observer] through a bounded buffer and a goroutine, so the
// engine may note them anywhere, also with a key locked.

const (
	mostEvents = 4096        // that wait to be told
	lastEvents = time.Second // for which Close waits for the observer
)

// observer tells a [holdfast.Observer] of events. A nil observer does nothing. Safe for
// concurrent use.
type observer struct {
	kinds    kinds
	engine   *Engine // immutable
	events   chan event
	missed   atomic.Int64  // sum of kind.dropped
	closing  chan struct{} // closed by close
	late     atomic.Bool   // close waits no longer
	done     chan struct{} // closed by the loop when it ends
	panicked bool          // owned by the loop
	away     atomic.Int64  // length of outages
	mu       sync.Mutex
	outages  map[string]silence // by server; guarded by mu
}

// silence is an outage of a server. Its times are those of Calls.Now.
type silence struct{ began, last time.Duration } // last: the last failed call

// kinds are the kinds of events, one for each function of the observer.
type kinds struct {
	acquired, failed, released, lost, renewed, woken, waiters, outageBegan, outageEnded, dropped kind
}

// kind is what becomes of the events of a kind.
type kind struct {
	tell    func(event)  // nil: the observer has no such function; immutable
	dropped atomic.Int64 // since the last DroppedEvent
}

// event is one of any kind, with the fields of that kind.
type event struct {
	kind    *kind
	waiting int
	key     string // or the server
	how     holdfast.How
	took    time.Duration
	err     error
}

// newObserver starts the goroutine of an observer; close ends it. It returns nil if to is nil.
func newObserver(e *Engine, to *holdfast.Observer) *observer {
	if to == nil {
		return nil
	}
	o := &observer{
		engine: e, events: make(chan event, mostEvents), outages: make(map[string]silence),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	all := &o.kinds
	tell(&all.acquired, to.Acquired, func(ev event) holdfast.AcquiredEvent {
		return holdfast.AcquiredEvent{Key: ev.key, How: ev.how, Waited: ev.took}
	})
	tell(&all.failed, to.Failed, func(ev event) holdfast.FailedEvent {
		return holdfast.FailedEvent{Key: ev.key, Err: ev.err, Waited: ev.took}
	})
	tell(&all.released, to.Released, func(ev event) holdfast.ReleasedEvent {
		return holdfast.ReleasedEvent{Key: ev.key, Held: ev.took, Err: ev.err}
	})
	tell(&all.lost, to.Lost, func(ev event) holdfast.LostEvent { return holdfast.LostEvent{Key: ev.key, Held: ev.took, Err: ev.err} })
	tell(&all.renewed, to.Renewed, func(ev event) holdfast.RenewedEvent {
		return holdfast.RenewedEvent{Key: ev.key, Late: ev.took, Err: ev.err}
	})
	tell(&all.woken, to.Woken, func(ev event) holdfast.WokenEvent { return holdfast.WokenEvent{Key: ev.key} })
	tell(&all.waiters, to.Waiters, func(ev event) holdfast.WaitersEvent { return holdfast.WaitersEvent{Key: ev.key, Waiting: ev.waiting} })
	tell(&all.outageBegan, to.OutageBegan, func(ev event) holdfast.OutageBeganEvent {
		return holdfast.OutageBeganEvent{Server: ev.key, Err: ev.err}
	})
	tell(&all.outageEnded, to.OutageEnded, func(ev event) holdfast.OutageEndedEvent {
		return holdfast.OutageEndedEvent{Server: ev.key, Lasted: ev.took}
	})
	tell(&all.dropped, to.Dropped, func(event) holdfast.DroppedEvent {
		n := func(kind *kind) int { return int(kind.dropped.Swap(0)) }
		return holdfast.DroppedEvent{
			Acquired: n(&all.acquired), Failed: n(&all.failed), Released: n(&all.released), Lost: n(&all.lost), Renewed: n(&all.renewed),
			Woken: n(&all.woken), Waiters: n(&all.waiters), OutageBegan: n(&all.outageBegan), OutageEnded: n(&all.outageEnded),
		}
	})
	go o.run()
	return o
}

// tell has function, if it is not nil, called with what of makes of each event of a kind.
func tell[E any](kind *kind, function func(E), of func(event) E) {
	if function != nil {
		kind.tell = func(ev event) { function(of(ev)) }
	}
}

// run tells events until close, and then those that wait. A function that ends the goroutine
// does not end the observer.
func (o *observer) run() {
	over := false
	defer func() {
		if over {
			close(o.done)
			return
		}
		o.broke("the observer ended its goroutine (runtime.Goexit)")
		go o.run()
	}()
	for open := true; open; {
		select {
		case ev := <-o.events:
			o.tell(ev)
		case <-o.closing:
			open = false
		}
	}
	for range len(o.events) {
		o.tell(<-o.events)
	}
	over = true
}

// close tells the events that wait, unless the observer blocks. It is called once.
func (o *observer) close() {
	if o == nil {
		return
	}
	close(o.closing)
	limit := time.NewTimer(lastEvents)
	defer limit.Stop()
	select {
	case <-o.done:
	case <-limit.C: // perhaps the observer itself has called Close
		o.late.Store(true)
	}
}

// put queues an event that the observer wants, or counts it as dropped.
func (o *observer) put(ev event) {
	if ev.kind.tell == nil {
		return
	}
	select {
	case o.events <- ev:
	default:
		ev.kind.dropped.Add(1)
		o.missed.Add(1)
	}
}

// tell tells an event, and what was dropped since the one before.
func (o *observer) tell(ev event) {
	o.call(ev)
	if o.missed.Swap(0) > 0 {
		o.call(event{kind: &o.kinds.dropped})
	}
}

// call calls a function of the observer.
func (o *observer) call(ev event) {
	if ev.kind.tell == nil || o.late.Load() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			o.broke(p)
		}
	}()
	ev.kind.tell(ev)
}

// broke logs the first panic of the observer.
func (o *observer) broke(p any) {
	if !o.panicked {
		o.panicked = true
		o.engine.Logger.Error("holdfast: the observer panicked; this is logged once", "panic", p, "stack", string(debug.Stack()))
	}
}

// now is the time by Calls.Now; 0 without an observer.
func (o *observer) now() time.Duration {
	if o == nil {
		return 0
	}
	return o.engine.Calls.Now()
}

// acquired notes that an entry has begun, whose caller has asked since then, by Calls.Now. The
// key is locked.
func (o *observer) acquired(en *entry, how holdfast.How, since time.Duration) {
	if o == nil {
		return
	}
	en.began = o.now()
	o.put(event{kind: &o.kinds.acquired, key: en.Key(), how: how, took: en.began - since})
}

// ended notes that an entry, held for so long, has ended: by loss if why is ErrLost.
func (o *observer) ended(en *entry, held time.Duration, why error) {
	switch {
	case o == nil:
	case errors.Is(why, holdfast.ErrLost):
		o.put(event{kind: &o.kinds.lost, key: en.Key(), took: held, err: errs.Of("lease of", en.Key(), why)})
	default:
		o.put(event{kind: &o.kinds.released, key: en.Key(), took: held, err: why})
	}
}

// sectionEnded notes the end of the entries of a section that ends without an Unlock. The key
// is locked.
func (o *observer) sectionEnded(s *section, why error) {
	if o == nil {
		return
	}
	if !s.first.over {
		o.ended(&s.first, o.held(&s.first), why)
	}
	if s.nesting != nil {
		for en := range s.nesting.entries {
			o.ended(en, o.held(en), why)
		}
	}
}

// held is how long an entry has been held; 0 without an observer.
func (o *observer) held(en *entry) time.Duration { return o.now() - en.began }

// failed notes that a lock call, which began at that time, has failed.
func (o *observer) failed(key string, why error, began time.Duration) {
	if o != nil && why != nil {
		o.put(event{kind: &o.kinds.failed, key: key, took: o.now() - began, err: why})
	}
}

// renewed notes how a renewal that began at that time has ended: confirmed, or failed as why
// says.
func (o *observer) renewed(h *Hold, began time.Duration, why error) {
	if o == nil || !h.Alive() {
		return
	}
	due := h.extras.due.Load()
	if why == nil {
		h.extras.due.Store(int64(began + o.engine.Lease/3))
	}
	o.put(event{kind: &o.kinds.renewed, key: o.engine.KeyOf(h.Key.Name), took: max(0, o.now()-time.Duration(due)), err: why})
}

// Woken notes that a message has woken the waiters of the key of this name.
func (e *Engine) Woken(name string) { e.observer.woken(name) }

// Answered notes how a call for the key of a name ended.
func (e *Engine) Answered(ctx context.Context, name string, err error) {
	e.observer.answered(ctx, name, err)
}

// woken notes that a message has woken the waiters of the key of this name.
func (o *observer) woken(name string) {
	if o != nil {
		o.put(event{kind: &o.kinds.woken, key: o.engine.KeyOf(name)})
	}
}

// waiters notes that the number of a key's waiters has changed, with the key locked.
func (o *observer) waiters(name string, waiting int) {
	if o != nil {
		o.put(event{kind: &o.kinds.waiters, key: o.engine.KeyOf(name), waiting: waiting})
	}
}

// answered notes how a call for the key of a name ended. A call that its caller gave up
// says nothing of Redis. Neither does a call whose time was over before it was sent.
func (o *observer) answered(ctx context.Context, name string, err error) {
	if o == nil || err == nil && o.away.Load() == 0 {
		return
	}
	outcome := scripts.OutcomeOf(err)
	failed := outcome == scripts.Unavailable || outcome == scripts.Unknown
	if failed && ctx.Err() == context.Canceled || outcome == scripts.Refused && ctx.Err() != nil {
		return
	}
	server, now := o.engine.Calls.ServerOf(name), o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if failed {
		out, known := o.outages[server]
		if !known {
			out.began = now
			o.put(event{kind: &o.kinds.outageBegan, key: server, err: err})
		}
		out.last = now
		o.outages[server] = out
	} else {
		for name, out := range o.outages {
			if name == server || now-out.last > o.engine.Lease { // nobody asks a server that another has replaced
				delete(o.outages, name)
				o.put(event{kind: &o.kinds.outageEnded, key: name, took: now - out.began})
			}
		}
	}
	o.away.Store(int64(len(o.outages)))
}
