package engine

import (
	"context"
	"errors"
	"reflect"
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

// observer is a [holdfast.Observer] with the events that it has yet to hear of. A nil
// observer does nothing. Safe for concurrent use.
type observer struct {
	to       holdfast.Observer // immutable
	engine   *Engine           // immutable
	wanted   [kinds]bool       // immutable
	events   chan event
	dropped  [kinds]atomic.Int64 // since the last DroppedEvent
	missed   atomic.Int64        // sum of dropped
	closing  chan struct{}       // closed by close
	late     atomic.Bool         // close waits no longer
	done     chan struct{}       // closed by the loop when it ends
	panicked bool                // owned by the loop
	away     atomic.Int64        // length of outages
	mu       sync.Mutex
	outages  map[string]silence // by server; guarded by mu
}

// silence is an outage of a server. Its times are those of Calls.Now.
type silence struct{ began, last time.Duration } // last: the last failed call

// kind is a function of [holdfast.Observer], in the order of its fields.
type kind uint8

const (
	kindAcquired kind = iota
	kindRefused
	kindReleased
	kindLost
	kindRenewed
	kindWoken
	kindQueue
	kindOutageBegan
	kindOutageEnded
	kindDropped
	kinds
)

// event is one of any kind, with the fields of that kind.
type event struct {
	kind    kind
	waiting int
	key     string // or the server
	how     holdfast.How
	took    time.Duration
	err     error
}

// newObserver starts the goroutine of an observer; close ends it. It returns nil if to has no
// function.
func newObserver(e *Engine, to holdfast.Observer) *observer {
	functions := reflect.ValueOf(to)
	if functions.IsZero() {
		return nil
	}
	o := &observer{
		to: to, engine: e, events: make(chan event, mostEvents), outages: make(map[string]silence),
		closing: make(chan struct{}), done: make(chan struct{}),
	}
	for i := range o.wanted {
		o.wanted[i] = !functions.Field(i).IsNil()
	}
	go o.run()
	return o
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
		o.failed("the observer ended its goroutine (runtime.Goexit)")
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
	if !o.wanted[ev.kind] {
		return
	}
	select {
	case o.events <- ev:
	default:
		o.dropped[ev.kind].Add(1)
		o.missed.Add(1)
	}
}

// tell tells an event, and what was dropped since the one before.
func (o *observer) tell(ev event) {
	o.call(ev)
	if o.missed.Swap(0) > 0 {
		o.call(event{kind: kindDropped})
	}
}

// call calls a function of the observer.
func (o *observer) call(ev event) {
	if !o.wanted[ev.kind] || o.late.Load() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			o.failed(p)
		}
	}()
	switch to := o.to; ev.kind {
	case kindAcquired:
		to.Acquired(holdfast.AcquiredEvent{Key: ev.key, How: ev.how, Waited: ev.took})
	case kindRefused:
		to.Refused(holdfast.RefusedEvent{Key: ev.key, Err: ev.err, Waited: ev.took})
	case kindReleased:
		to.Released(holdfast.ReleasedEvent{Key: ev.key, Held: ev.took, Err: ev.err})
	case kindLost:
		to.Lost(holdfast.LostEvent{Key: ev.key, Held: ev.took, Err: ev.err})
	case kindRenewed:
		to.Renewed(holdfast.RenewedEvent{Key: ev.key, Late: ev.took, Err: ev.err})
	case kindWoken:
		to.Woken(holdfast.WokenEvent{Key: ev.key})
	case kindQueue:
		to.Queue(holdfast.QueueEvent{Key: ev.key, Waiting: ev.waiting})
	case kindOutageBegan:
		to.OutageBegan(holdfast.OutageBeganEvent{Server: ev.key, Err: ev.err})
	case kindOutageEnded:
		to.OutageEnded(holdfast.OutageEndedEvent{Server: ev.key, Lasted: ev.took})
	case kindDropped:
		n := func(what kind) int { return int(o.dropped[what].Swap(0)) }
		to.Dropped(holdfast.DroppedEvent{
			Acquired: n(kindAcquired), Refused: n(kindRefused), Released: n(kindReleased), Lost: n(kindLost), Renewed: n(kindRenewed),
			Woken: n(kindWoken), Queue: n(kindQueue), OutageBegan: n(kindOutageBegan), OutageEnded: n(kindOutageEnded),
		})
	}
}

// failed logs the first panic of the observer.
func (o *observer) failed(p any) {
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

// acquired notes that an entry has begun, whose caller has asked since then. The key is
// locked.
func (o *observer) acquired(en *entry, how holdfast.How, since time.Time) {
	if o == nil {
		return
	}
	en.began = o.now()
	o.put(event{kind: kindAcquired, key: en.Key(), how: how, took: time.Since(since)})
}

// ended notes that an entry, held for so long, has ended: by loss if why is ErrLost.
func (o *observer) ended(en *entry, held time.Duration, why error) {
	switch {
	case o == nil:
	case errors.Is(why, holdfast.ErrLost):
		o.put(event{kind: kindLost, key: en.Key(), took: held, err: errs.Of("lease of", en.Key(), why)})
	default:
		o.put(event{kind: kindReleased, key: en.Key(), took: held, err: why})
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

// refused notes that a lock call, which began at that time, has failed.
func (o *observer) refused(key string, why error, began time.Duration) {
	if o != nil && why != nil {
		o.put(event{kind: kindRefused, key: key, took: o.now() - began, err: why})
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
	o.put(event{kind: kindRenewed, key: o.engine.KeyOf(h.Key.Name), took: max(0, o.now()-time.Duration(due)), err: why})
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
		o.put(event{kind: kindWoken, key: o.engine.KeyOf(name)})
	}
}

// queue notes that the number of a key's waiters has changed, with the key locked.
func (o *observer) queue(name string, waiting int) {
	if o != nil {
		o.put(event{kind: kindQueue, key: o.engine.KeyOf(name), waiting: waiting})
	}
}

// answered notes how a call for the key of a name ended. A call that its caller gave up says
// nothing, nor does one whose time was over before it was sent.
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
			o.put(event{kind: kindOutageBegan, key: server, err: err})
		}
		out.last = now
		o.outages[server] = out
	} else {
		for name, out := range o.outages {
			if name == server || now-out.last > o.engine.Lease { // nobody asks a server that another has replaced
				delete(o.outages, name)
				o.put(event{kind: kindOutageEnded, key: name, took: now - out.began})
			}
		}
	}
	o.away.Store(int64(len(o.outages)))
}
