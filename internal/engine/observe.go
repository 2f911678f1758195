package engine

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Events go to a [holdfast.Observer] through a bounded buffer and a goroutine, so the
// engine may note them anywhere, also with a key's mutex held.

const (
	maxEvents  = 4096        // that wait to be told
	lastEvents = time.Second // for which Close waits for the observer
)

// observer reports events to a [holdfast.Observer]. A nil observer does nothing. Safe for
// concurrent use.
type observer struct {
	to       holdfast.Observer // immutable
	engine   *Engine           // immutable
	events   chan func()       // each reports one
	closing  chan struct{}     // closed by close
	late     atomic.Bool       // close no longer waits
	done     chan struct{}     // closed by the loop when it ends
	panicked bool              // owned by the loop
	dropMu   sync.Mutex
	dropped  holdfast.DroppedEvent // the next one; guarded by dropMu
	away     atomic.Int64          // size of outages
	mu       sync.Mutex
	outages  map[string]serverOutage // by server; guarded by mu
	halves   map[string]int          // waiters of readers and writers together, by name; guarded by mu
}

// serverOutage is an outage of a server. Its times are those of Calls.Now.
type serverOutage struct{ began, last time.Duration } // last: the last failed call

// newObserver starts the goroutine of an observer; close ends it. It returns nil if to is nil.
func newObserver(e *Engine, to *holdfast.Observer) *observer {
	if to == nil {
		return nil
	}
	o := &observer{
		to: *to, engine: e, events: make(chan func(), maxEvents), outages: make(map[string]serverOutage), halves: make(map[string]int),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	go o.run()
	return o
}

// run reports events until close, and then those that wait. A function that ends the
// goroutine does not end the observer.
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
		case event := <-o.events:
			o.tell(event)
		case <-o.closing:
			open = false
		}
	}
	for range len(o.events) {
		o.tell(<-o.events)
	}
	over = true
}

// close reports the events that wait, unless the observer blocks. It is called once.
func (o *observer) close() {
	if o == nil {
		return
	}
	o.mu.Lock()
	for server, out := range o.outages {
		o.outageEnded(server, out, o.now())
	}
	o.mu.Unlock()
	close(o.closing)
	limit := time.NewTimer(lastEvents)
	defer limit.Stop()
	select {
	case <-o.done:
	case <-limit.C: // perhaps the observer itself has called Close
		o.late.Store(true)
	}
}

// emit queues an event for a function of the observer, or counts it in dropped. It does nothing if
// the function is nil.
func emit[E any](o *observer, function func(E), dropped *int, event E) {
	if function == nil {
		return
	}
	select {
	case o.events <- func() { function(event) }:
	default:
		o.dropMu.Lock()
		*dropped++
		o.dropMu.Unlock()
	}
}

// tell reports an event, and what was dropped since the one before.
func (o *observer) tell(event func()) {
	o.call(event)
	o.dropMu.Lock()
	dropped := o.dropped
	o.dropped = holdfast.DroppedEvent{}
	o.dropMu.Unlock()
	if o.to.Dropped != nil && dropped != (holdfast.DroppedEvent{}) {
		o.call(func() { o.to.Dropped(dropped) })
	}
}

func (o *observer) call(f func()) {
	if o.late.Load() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			o.broke(p)
		}
	}()
	f()
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

// acquired notes that an entry has begun, whose caller began to ask at since, by Calls.Now. The
// key's mutex is held.
func (o *observer) acquired(en *entry, how holdfast.How, since time.Duration) {
	if o == nil {
		return
	}
	en.began = o.now()
	emit(o, o.to.Acquired, &o.dropped.Acquired, holdfast.AcquiredEvent{Key: en.Key(), How: how, Waited: en.began - since})
}

// ended notes that an entry, held for so long, has ended: by loss if why is ErrLost.
func (o *observer) ended(en *entry, held time.Duration, why error) {
	switch {
	case o == nil:
	case errors.Is(why, holdfast.ErrLost):
		emit(o, o.to.Lost, &o.dropped.Lost, holdfast.LostEvent{Key: en.Key(), Held: held, Err: errs.Of("lease of", en.Key(), why)})
	default:
		emit(o, o.to.Released, &o.dropped.Released, holdfast.ReleasedEvent{Key: en.Key(), Held: held, Err: why})
	}
}

// sectionEnded notes the end of the entries of a section that ends without an Unlock. The key's mutex
// is held.
func (o *observer) sectionEnded(s *section, why error) {
	if o == nil {
		return
	}
	if !s.first.endedEarly {
		o.ended(&s.first, o.heldFor(&s.first), why)
	}
	if s.nesting != nil {
		for en := range s.nesting.entries {
			o.ended(en, o.heldFor(en), why)
		}
	}
}

// held is how long an entry has been held; 0 without an observer.
func (o *observer) heldFor(en *entry) time.Duration { return o.now() - en.began }

// failed notes that a lock call, which began at that time, has failed.
func (o *observer) failed(key string, why error, began time.Duration) {
	if o != nil && why != nil {
		emit(o, o.to.Failed, &o.dropped.Failed, holdfast.FailedEvent{Key: key, Err: why, Waited: o.now() - began})
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
	late := max(0, o.now()-time.Duration(due))
	emit(o, o.to.Renewed, &o.dropped.Renewed, holdfast.RenewedEvent{Key: o.engine.KeyOf(h.Key.Name), Late: late, Err: why})
}

// Woken notes that a message has woken the waiters of the key of this name.
func (e *Engine) Woken(name string) {
	if o := e.observer; o != nil {
		emit(o, o.to.Woken, &o.dropped.Woken, holdfast.WokenEvent{Key: e.KeyOf(name)})
	}
}

// noteWaiterCount notes that a key has so many waiters, after a change of their number, with the key's mutex
// held. Those of both halves of a read/write lock count together.
func (e *Engine) noteWaiterCount(name string, waiting, change int) {
	o := e.observer
	if o == nil {
		return
	}
	if e.readers != nil || e.writers != nil {
		o.mu.Lock() // also while the event is emitted, so that the last one has the last number
		defer o.mu.Unlock()
		waiting = o.halves[name] + change
		if o.halves[name] = waiting; waiting == 0 {
			delete(o.halves, name)
		}
	}
	emit(o, o.to.Waiters, &o.dropped.Waiters, holdfast.WaitersEvent{Key: e.KeyOf(name), Waiting: waiting})
}

// Call makes a call for the key of a name as calls.Detached does, and notes it.
func Call[T any](ctx context.Context, e *Engine, name string, call func(context.Context) (T, error)) (T, error) {
	value, err := calls.Detached(ctx, e.Calls, name, call)
	return value, e.NoteCall(ctx, name, err)
}

// NoteCall notes how a call for the key of a name ended, for the observer and for [calls.Calls.Answering]. It returns the error
// as [calls.Calls.Public] does.
func (e *Engine) NoteCall(ctx context.Context, name string, err error) error {
	e.ObserveCall(ctx, name, err)
	err = e.Calls.Public(err)
	e.Calls.Note(name, err)
	return err
}

// ObserveCall notes how a call for the key of a name ended, by the error of the backend. A call that its caller gave up says
// nothing about Redis. Neither does a call whose time ran out before it was sent.
func (e *Engine) ObserveCall(ctx context.Context, name string, err error) {
	o := e.observer
	if o == nil || err == nil && o.away.Load() == 0 {
		return
	}
	outcome := wire.OutcomeOf(err)
	failed := outcome == wire.Unavailable || outcome == wire.Unknown
	if failed && ctx.Err() == context.Canceled || outcome == wire.Refused && ctx.Err() != nil {
		return
	}
	server, now := e.Calls.ServerOf(name), o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if failed {
		out, known := o.outages[server]
		if !known {
			out.began = now
			emit(o, o.to.OutageBegan, &o.dropped.OutageBegan, holdfast.OutageBeganEvent{Server: server, Err: e.Calls.Public(err)})
		}
		out.last = now
		o.outages[server] = out
	} else {
		for name, out := range o.outages {
			if name == server || now-out.last > e.Lease { // nobody asks a server that another has replaced
				o.outageEnded(name, out, now)
			}
		}
	}
	o.away.Store(int64(len(o.outages)))
}

// outageEnded notes the end of a server's outage. mu is held.
func (o *observer) outageEnded(server string, out serverOutage, now time.Duration) {
	delete(o.outages, server)
	emit(o, o.to.OutageEnded, &o.dropped.OutageEnded, holdfast.OutageEndedEvent{Server: server, Lasted: now - out.began})
}
