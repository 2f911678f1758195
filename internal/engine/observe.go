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
func newObserver(h *Engine, to holdfast.Observer) *observer {
	functions := reflect.ValueOf(to)
	if functions.IsZero() {
		return nil
	}
	o := &observer{
		to: to, engine: h, events: make(chan event, mostEvents), outages: make(map[string]silence),
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
		case e := <-o.events:
			o.tell(e)
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
func (o *observer) put(e event) {
	if !o.wanted[e.kind] {
		return
	}
	select {
	case o.events <- e:
	default:
		o.dropped[e.kind].Add(1)
		o.missed.Add(1)
	}
}

// tell tells an event, and what was dropped since the one before.
func (o *observer) tell(e event) {
	o.call(e)
	if o.missed.Swap(0) > 0 {
		o.call(event{kind: kindDropped})
	}
}

// call calls a function of the observer.
func (o *observer) call(e event) {
	if !o.wanted[e.kind] || o.late.Load() {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			o.failed(p)
		}
	}()
	switch to := o.to; e.kind {
	case kindAcquired:
		to.Acquired(holdfast.AcquiredEvent{Key: e.key, How: e.how, Waited: e.took})
	case kindRefused:
		to.Refused(holdfast.RefusedEvent{Key: e.key, Err: e.err, Waited: e.took})
	case kindReleased:
		to.Released(holdfast.ReleasedEvent{Key: e.key, Held: e.took, Err: e.err})
	case kindLost:
		to.Lost(holdfast.LostEvent{Key: e.key, Held: e.took, Err: e.err})
	case kindRenewed:
		to.Renewed(holdfast.RenewedEvent{Key: e.key, Late: e.took, Err: e.err})
	case kindWoken:
		to.Woken(holdfast.WokenEvent{Key: e.key})
	case kindQueue:
		to.Queue(holdfast.QueueEvent{Key: e.key, Waiting: e.waiting})
	case kindOutageBegan:
		to.OutageBegan(holdfast.OutageBeganEvent{Server: e.key, Err: e.err})
	case kindOutageEnded:
		to.OutageEnded(holdfast.OutageEndedEvent{Server: e.key, Lasted: e.took})
	case kindDropped:
		n := func(k kind) int { return int(o.dropped[k].Swap(0)) }
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
func (o *observer) acquired(e *entry, how holdfast.How, since time.Time) {
	if o == nil {
		return
	}
	e.began = o.now()
	o.put(event{kind: kindAcquired, key: o.keyOf(e), how: how, took: time.Since(since)})
}

// ended notes that an entry, held for so long, has ended: by loss if why is ErrLost.
func (o *observer) ended(e *entry, held time.Duration, why error) {
	switch {
	case o == nil:
	case errors.Is(why, holdfast.ErrLost):
		o.put(event{kind: kindLost, key: o.keyOf(e), took: held, err: errs.Of("lease of", o.keyOf(e), why)})
	default:
		o.put(event{kind: kindReleased, key: o.keyOf(e), took: held, err: why})
	}
}

// sectionEnded notes the end of the entries of a section that ends without an Unlock. The key
// is locked.
func (o *observer) sectionEnded(c *section, why error) {
	if o == nil {
		return
	}
	if !c.first.over {
		o.ended(&c.first, o.held(&c.first), why)
	}
	if c.nesting != nil {
		for e := range c.nesting.entries {
			o.ended(e, o.held(e), why)
		}
	}
}

func (o *observer) keyOf(e *entry) string { return o.engine.KeyOf(e.section.hold.Key.Name) }

// held is how long an entry has been held; 0 without an observer.
func (o *observer) held(e *entry) time.Duration { return o.now() - e.began }

// refused notes that a lock call, which began at that time, has failed.
func (o *observer) refused(key string, why error, began time.Duration) {
	if o != nil && why != nil {
		o.put(event{kind: kindRefused, key: key, took: o.now() - began, err: why})
	}
}

// renewed notes how a renewal that began at that time has ended: confirmed, or failed as why
// says.
func (o *observer) renewed(d *Hold, began time.Duration, why error) {
	if o == nil || !d.Alive() {
		return
	}
	due := d.extras.due.Load()
	if why == nil {
		d.extras.due.Store(int64(began + o.engine.Lease/3))
	}
	o.put(event{kind: kindRenewed, key: o.engine.KeyOf(d.Key.Name), took: max(0, o.now()-time.Duration(due)), err: why})
}

// Woken notes that a message has woken the waiters of the key of this name.
func (h *Engine) Woken(name string) { h.observer.woken(name) }

// Answered notes how a call for the key of a name ended.
func (h *Engine) Answered(ctx context.Context, name string, err error) {
	h.observer.answered(ctx, name, err)
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
		s, known := o.outages[server]
		if !known {
			s.began = now
			o.put(event{kind: kindOutageBegan, key: server, err: err})
		}
		s.last = now
		o.outages[server] = s
	} else {
		for name, s := range o.outages {
			if name == server || now-s.last > o.engine.Lease { // nobody asks a server that another has replaced
				delete(o.outages, name)
				o.put(event{kind: kindOutageEnded, key: name, took: now - s.began})
			}
		}
	}
	o.away.Store(int64(len(o.outages)))
}
