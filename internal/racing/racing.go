package racing

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/scripts"
)

// racing is the discipline. One loop for all waiters of a key subscribes to its releases and
// tries again after each; the waiters themselves send no command.
type racing struct {
	engine  *engine.Engine                // immutable
	backend Backend                       // the engine's; immutable
	delay   func(tries int) time.Duration // nil: there are no split votes; immutable
	usual   [engine.Shards]calls.Average  // by shard of the key: 1024 times the releases that a wait lets pass; with delay
}

// New returns an engine whose waiters race with other processes for a key. It makes no call to
// Redis. Close it when it is no longer used.
func New(backend Backend, c engine.Config) *engine.Engine { return newRacing(backend, c).engine }

func newRacing(backend Backend, c engine.Config) *racing {
	r := &racing{backend: backend}
	if b, splits := backend.(Splitting); splits {
		r.delay = b.RetryDelay
	}
	r.engine = engine.New(backend, r, c)
	return r
}

func (r *racing) usualReleases(k *engine.Key) *calls.Average {
	return &r.usual[k.Shard()]
}

func (r *racing) Join(k *engine.Key, w *engine.Waiter) engine.Ticket {
	if r.engine.ManyHolds && !k.Asking(w.Terms) { // nobody else need be about to begin the loop
		r.Settle(k)
	}
	return nil
}

func (r *racing) Refused(k *engine.Key, _ *engine.Waiter, a engine.Attempt) {
	p := ensureRace(k)
	a = k.NoteResult(a)
	p.outage = p.outage.Note(a)
	p.contended, p.why = p.contended || a.Err == nil, a.Why
	if r.engine.ManyHolds { // there may be others
		r.engine.Undo(a.Orphan)
	} else {
		p.orphan = a.Orphan
	}
}

func (r *racing) WaiterLeft(k *engine.Key, _ *engine.Waiter) {
	if p := raceOf(k); p != nil && k.FirstWaiter() == nil {
		p.look()
	}
}

func (r *racing) WaitError(k *engine.Key, _ *engine.Waiter) error {
	switch p := raceOf(k); {
	case p != nil && p.outage != nil:
		return p.outage.Err
	case p != nil && p.why != nil:
		return p.why
	}
	return k.NotAcquired()
}

func (r *racing) Next(k *engine.Key, _ *engine.Hold) *engine.Waiter {
	w := k.FirstWaiter()
	if w == nil || !w.Terms.Plain() {
		return nil
	}
	k.Remove(w)
	if k.FirstWaiter() == nil {
		r.Settle(k)
	}
	return w
}

func (r *racing) Release(ctx context.Context, h *engine.Hold, lastFence int64) (scripts.Released, error) {
	return r.backend.Release(ctx, h.Key.Name, h.Owner, lastFence)
}

func (r *racing) GiveUp(ctx context.Context, name, owner string) error {
	_, err := r.backend.GiveUp(ctx, name, owner)
	return err
}

func (r *racing) BeforeRelease(k *engine.Key) {
	if p := raceOf(k); p != nil {
		if p.before = p.seen(); p.before.Live {
			p.turns.departs()
		}
	}
}

// AfterRelease begins the turns of the other processes, if there are waiters here.
func (r *racing) AfterRelease(k *engine.Key, released scripts.Released) {
	if p := raceOf(k); p != nil {
		p.turns.departed()
	}
	if released.Ours && k.FirstWaiter() != nil && r.engine.LocalHandover > 0 {
		p, others := ensureRace(k), released.Listeners
		if p.before.Live {
			others--
		}
		p.turns.stepBack(others, p.before, time.Now(), r.engine.RTT())
		if p.before.Live && released.Listeners > 0 { // otherwise it has published nothing
			p.turns.published()
		}
		p.contended = p.contended || others > 0
	}
	if p := raceOf(k); p != nil && p.turns.active() {
		p.look() // the next probe may be sooner
	} else if p != nil {
		p.hurry()
	}
}

func (r *racing) HoldLost(k *engine.Key, _ *engine.Hold) {
	if p := raceOf(k); p != nil {
		p.hurry()
	}
}

func (r *racing) Settle(k *engine.Key) {
	p := raceOf(k)
	switch {
	case k.FirstWaiter() != nil && (r.engine.ManyHolds || !k.Busy() && !k.Held()):
		if p = ensureRace(k); !p.running {
			p.running = true
			k.Go(func() { r.run(k) })
		}
	case k.Busy(): // the end of that call settles it
		if p != nil && k.FirstWaiter() == nil {
			p.look()
		}
	case k.FirstWaiter() == nil:
		if p != nil {
			if p.sub != nil {
				p.sub.Close()
			}
			r.engine.Undo(p.orphan)
			k.SetState(nil)
		}
		if !k.Held() {
			k.Drop()
		}
	}
}
