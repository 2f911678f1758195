package racing

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// discipline is how waiters race for a key. One loop for all waiters of a key subscribes to its releases and
// tries again after each; the waiters themselves send no command.
type discipline struct {
	engine  *engine.Engine                // immutable
	backend Backend                       // the engine's; immutable
	delay   func(tries int) time.Duration // nil: there are no split votes; immutable
	usual   [engine.Stripes]calls.Average // by stripe of the key: how many releases a wait lets pass, in 1024ths; used only with delay
}

// New returns an engine whose waiters race with other processes for a key. It makes no call to
// Redis. Close it when it is no longer used.
func New(backend Backend, c engine.Config) *engine.Engine { return newDiscipline(backend, c).engine }

func newDiscipline(backend Backend, c engine.Config) *discipline {
	d := &discipline{backend: backend}
	if b, splits := backend.(Splitting); splits {
		d.delay = b.RetryDelay
	}
	d.engine = engine.New(backend, d, c)
	return d
}

// Join begins the loop at once where several permits may be free. Otherwise, the end of the hold or call for
// which w waits begins it. Readers wait for that, too: a call under way may serve them all.
func (d *discipline) Join(k *engine.Key, _ *engine.Waiter) engine.Ticket {
	if d.engine.Holds == engine.ManyHolds {
		d.Settle(k)
	}
	return nil
}

func (d *discipline) JoinFirst(k *engine.Key, _ *engine.Waiter, a engine.Attempt) {
	r := d.ensureRace(k)
	r.outage = r.outage.Note(a.Start, k.NoteResult(a.Err))
	r.contended, r.why = r.contended || a.Err == nil, a.Why
	if d.engine.Holds != engine.OneHold { // several first attempts may each leave one
		d.engine.Undo(a.Orphan)
	} else {
		r.orphan = a.Orphan
	}
}

func (d *discipline) WaiterLeft(k *engine.Key, _ *engine.Waiter) {
	if k.FirstWaiter() == nil {
		raceOf(k).look()
	}
}

func (d *discipline) WaitError(k *engine.Key, _ *engine.Waiter) error {
	switch r := raceOf(k); {
	case r != nil && r.outage != nil:
		return r.outage.Err
	case r != nil && r.why != nil:
		return r.why
	}
	return k.NotAcquired()
}

func (d *discipline) Next(k *engine.Key, _ *engine.Hold) *engine.Waiter {
	w := k.FirstWaiter()
	if w == nil || !w.Terms.Default() {
		return nil
	}
	k.Remove(w)
	if k.FirstWaiter() == nil {
		d.Settle(k)
	}
	return w
}

func (d *discipline) Release(ctx context.Context, h *engine.Hold, lastFence int64) (wire.ReleaseReply, error) {
	return d.backend.Release(ctx, wire.ReleaseRequest{Key: h.Key.Name, Owner: h.Owner, LastFence: lastFence})
}

func (d *discipline) GiveUp(ctx context.Context, name, owner string) error {
	_, err := d.backend.Release(ctx, wire.ReleaseRequest{Key: name, Owner: owner, Doubt: true})
	return err
}

func (d *discipline) BeforeRelease(k *engine.Key) {
	if r := raceOf(k); r != nil {
		if r.atRelease = r.seen(); r.atRelease.Live {
			r.turns.departs()
		}
	}
}

// AfterRelease begins the turns of the other processes, if there are waiters here.
func (d *discipline) AfterRelease(k *engine.Key, released wire.ReleaseReply) {
	r := raceOf(k)
	if r != nil {
		r.turns.departed()
	}
	if released.Ours && k.FirstWaiter() != nil && d.engine.LocalHandover > 0 {
		r = d.ensureRace(k)
		others := released.Listeners
		if r.atRelease.Live {
			others--
		}
		r.turns.stepBack(others, r.atRelease, time.Now(), d.engine.RTT())
		if r.atRelease.Live && released.Listeners > 0 { // otherwise it has published nothing
			r.turns.published()
		}
		r.contended = r.contended || others > 0
	}
	if r != nil && r.turns.active() {
		r.look() // the next probe may be sooner
	} else {
		r.hurry()
	}
}

func (d *discipline) HoldLost(k *engine.Key, _ *engine.Hold) {
	raceOf(k).hurry()
}

func (d *discipline) Settle(k *engine.Key) {
	switch waits := k.FirstWaiter() != nil; {
	case waits && (d.engine.Holds != engine.OneHold || !k.Busy() && !k.Held()):
		if r := d.ensureRace(k); !r.running {
			r.running = true
			k.Go(r.loop)
		}
	case waits: // the end of that call or hold settles it
	case k.Busy():
		raceOf(k).look()
	default:
		d.drop(k)
	}
}

// drop ends the race for a key without waiters, and forgets a key that is not held either.
func (d *discipline) drop(k *engine.Key) {
	if r := raceOf(k); r != nil {
		if r.sub != nil {
			r.sub.Close()
		}
		d.engine.Undo(r.orphan)
		k.SetState(nil)
	}
	if !k.Held() {
		k.Drop()
	}
}
