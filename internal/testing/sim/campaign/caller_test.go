package campaign_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/rwlock"
)

// asked is all that callers ask for, in a long campaign.
var asked = []string{
	"Lock", "TryLock", "TryLockFor", "Do", "LockAll", "ForceUnlock", "Close", "nested", "nested reader", "downgrade", "Resize", "FixedLease", "MaxHold",
	"context with deadline", "cancelled context", "Unlock with a context that is over",
}

// caller makes random calls of a process, one after the other, until the campaign is over. What
// it wants depends on the seed alone.
type caller struct {
	c       *campaign
	process int
	who     string
	r       *rand.Rand
}

func (c *campaign) caller(process, number int) *caller {
	who := fmt.Sprintf("caller %d.%d", process, number)
	return &caller{c, process, who, sim.Random(c.seed, who)}
}

// up to is a random duration.
func (a *caller) upTo(d time.Duration) time.Duration { return time.Duration(a.r.Int64N(int64(d))) }

// one says yes once in n times.
func (a *caller) one(n int) bool { return a.r.IntN(n) == 0 }

func (a *caller) run() {
	for time.Now().Before(a.c.stop) && a.c.life.Err() == nil {
		ctx, cancel := context.WithCancel(a.c.life)
		switch d := a.upTo(2 * a.c.lease); a.r.IntN(8) {
		case 0, 1:
			a.c.judge.asks("cancelled context")
			time.AfterFunc(d, cancel)
		case 2:
			a.c.judge.asks("context with deadline")
			cancel()
			ctx, cancel = context.WithTimeout(a.c.life, d)
		}
		a.call(ctx)
		cancel()
		if d, rests := a.upTo(2*time.Second), a.one(5); rests {
			time.Sleep(d)
		}
	}
}

// call makes one call, and unlocks.
func (a *caller) call(ctx context.Context) {
	var opts []holdfast.LockOption
	switch {
	case a.one(a.c.fixed):
		a.c.judge.asks("FixedLease")
		opts = append(opts, holdfast.FixedLease(a.c.lease/2))
	case a.one(8):
		a.c.judge.asks("MaxHold")
		opts = append(opts, holdfast.MaxHold(a.c.lease*3/2))
	}
	switch name := fmt.Sprint("k", a.r.IntN(a.c.keys)); a.r.IntN(16) {
	case 0:
		a.all(ctx, opts)
	case 1, 2:
		if name = "forced"; a.one(8) {
			a.force(ctx)
			return
		}
		a.lock(ctx, name, opts)
	case 3, 4:
		a.do(ctx, name, opts)
	default:
		a.lock(ctx, name, opts)
	}
}

func (c *campaign) locker(process int) sim.Locker { return *c.lockers[process].Load() }

func (a *caller) locker() sim.Locker { return a.c.locker(a.process) }

// lock locks, holds for a while, perhaps nested, and unlocks.
func (a *caller) lock(ctx context.Context, name string, opts []holdfast.LockOption) {
	limit := []time.Duration{0, a.c.lease, -1}[a.r.IntN(3)]
	hold, pause, nested := a.section(), a.upTo(500*time.Millisecond), a.r.IntN(4)
	half := a.half()
	inner, downgrades := half, false
	if a.c.kind == "rwlock" && !half.reads {
		inner.reads, downgrades = a.one(2), a.one(4)
	}
	var reads *holdfast.Lease
	err := a.c.take(ctx, half, a.process, a.who, name, limit, opts, func(l *holdfast.Lease) context.Context {
		if nested == 0 {
			if inner != half {
				a.c.judge.asks("nested reader")
			}
			a.nest(l.Bind(ctx), inner.of(a.locker()), name)
		}
		rest(hold, l.Done())
		if downgrades {
			reads, _ = a.locker().(*rwlock.Locker).RLocker().TryLock(l.Bind(ctx), name)
		}
		return a.leaving(ctx)
	})
	if err != nil {
		time.Sleep(pause)
	}
	if reads != nil {
		a.read(ctx, name, reads, hold)
	}
}

// read goes on as a reader that has been a writer. For the judge it begins now.
func (a *caller) read(ctx context.Context, name string, l *holdfast.Lease, hold time.Duration) {
	a.c.judge.asks("downgrade")
	if l.Err() == nil {
		h := a.c.judge.served(name, &waiter{who: a.who + " (downgraded)", process: a.process, plain: true, reads: true}, l, l.Fence())
		a.c.side.Go(func() { a.c.judge.watch(h) })
		rest(hold, l.Done())
		a.c.judge.unlock(a.leaving(ctx), name, h)
		return
	}
	_ = l.Unlock(context.WithoutCancel(ctx))
}

// half reports whether a caller of rwlock reads.
type half struct{ reads bool }

func (a *caller) half() half { return half{a.c.kind == "rwlock" && a.r.IntN(3) > 0} }

func (h half) of(l sim.Locker) holdfast.Locker {
	if h.reads {
		return l.(*rwlock.Locker).RLocker()
	}
	return l
}

// take locks, waiting for so long at most (negative: without limit), works, and unlocks with the
// context that work returns. It returns why it does not get the lock.
func (c *campaign) take(ctx context.Context, half half, process int, who, name string, limit time.Duration, opts []holdfast.LockOption, work func(*holdfast.Lease) context.Context) error {
	w := &waiter{who: who, process: process, queues: limit != 0, plain: len(opts) == 0, reads: half.reads}
	c.judge.waits(name, w)
	var l *holdfast.Lease
	var err error
	switch locker := half.of(c.locker(process)); {
	case limit == 0:
		c.judge.asks("TryLock")
		l, err = locker.TryLock(ctx, name, opts...)
	case limit > 0:
		c.judge.asks("TryLockFor")
		l, err = locker.TryLockFor(ctx, name, limit, opts...)
	default:
		c.judge.asks("Lock")
		l, err = locker.Lock(ctx, name, opts...)
	}
	if err != nil {
		c.judge.refused(name, w, err)
		return err
	}
	h := c.judge.served(name, w, l, l.Fence())
	c.side.Go(func() { c.judge.watch(h) })
	c.judge.unlock(work(l), name, h)
	return nil
}

// leaving is the context of an Unlock: that of a caller that leaves, once in three times.
func (a *caller) leaving(ctx context.Context) context.Context {
	if !a.one(3) {
		return context.WithoutCancel(ctx)
	}
	a.c.judge.asks("Unlock with a context that is over")
	gone, cancel := context.WithCancel(ctx)
	cancel()
	return gone
}

// nest enters up to three times more, a writer perhaps as a reader, and leaves in any order.
func (a *caller) nest(ctx context.Context, of holdfast.Locker, name string) {
	var all []*holdfast.Lease
	for range 1 + a.r.IntN(3) {
		l, err := of.TryLockFor(ctx, name, a.c.lease)
		if err != nil {
			break
		}
		a.c.judge.asks("nested")
		all = append(all, l)
		ctx = l.Bind(ctx)
	}
	a.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, l := range all {
		_ = l.Unlock(context.WithoutCancel(ctx))
	}
}

// section is how long a caller works: mostly 50 ms, at times some leases.
func (a *caller) section() time.Duration {
	if long := a.upTo(3 * a.c.lease); a.one(a.c.long) {
		return long
	}
	return a.upTo(50 * time.Millisecond)
}

// rest works until the lease is over at most.
func rest(d time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}

func (a *caller) do(ctx context.Context, name string, opts []holdfast.LockOption) {
	a.c.judge.asks("Do")
	half := a.half()
	w := &waiter{who: a.who, process: a.process, queues: true, plain: len(opts) == 0, reads: half.reads}
	hold, ran := a.section(), false
	a.c.judge.waits(name, w)
	err := half.of(a.locker()).Do(ctx, name, func(ctx context.Context) error {
		ran = true
		l := holdfast.LeaseFrom(ctx)
		h := a.c.judge.served(name, w, l, l.Fence())
		a.c.side.Go(func() { a.c.judge.watch(h) })
		rest(hold, ctx.Done())
		a.c.judge.leave(name, h)
		return nil
	}, append(opts, holdfast.WaitAtMost(2*a.c.lease))...)
	if !ran {
		a.c.judge.refused(name, w, err)
		time.Sleep(hold / 2)
	}
}

// all locks all keys but that of ForceUnlock, as one.
func (a *caller) all(ctx context.Context, opts []holdfast.LockOption) {
	a.c.judge.asks("LockAll")
	hold := a.upTo(100 * time.Millisecond)
	names := a.c.names()[:a.c.keys]
	a.c.judge.takes(names, +1) // it has some of them before it has all
	set, err := multilock.TryLockAllFor(ctx, multilock.Keys(a.locker(), names...), a.c.lease, opts...)
	a.c.judge.takes(names, -1)
	if err != nil {
		a.c.judge.say("%s does not get all: %v", a.who, err)
		time.Sleep(5 * hold)
		return
	}
	var hs []*holder
	for i, name := range names {
		hs = append(hs, a.c.judge.served(name, &waiter{who: a.who + " (all)", process: a.process}, set, set.Fences()[i]))
	}
	rest(hold, set.Done())
	for i, name := range names {
		a.c.judge.leave(name, hs[i])
	}
	_ = set.Unlock(context.WithoutCancel(ctx))
}

func (a *caller) force(ctx context.Context) {
	a.c.judge.asks("ForceUnlock")
	a.c.judge.force(+1, nil)
	_, err := a.locker().ForceUnlock(ctx, "forced")
	a.c.judge.force(-1, err)
}

// leave notes that a holder is about to unlock by itself: its section is over.
func (j *judge) leave(name string, h *holder) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.keys[name]
	k.counter.ends(h, j.c.began)
	delete(k.holders, h)
	k.left = time.Now()
	if !h.reads {
		k.written = time.Now().Add(j.c.lease) // at the latest
	}
}

// takes notes the begin or the end of a call that takes several keys.
func (j *judge) takes(names []string, more int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range names {
		k := j.keys[name]
		k.taking += more
		k.written = time.Now().Add(j.c.lease) // it may have had it
	}
}

// force notes the begin or the end of a ForceUnlock. It may have ended a hold of which the holder
// is told later, but within a lease. Without an answer, it may come late.
func (j *judge) force(more int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.keys["forced"]
	k.forcing += more
	k.forced = latest(k.forced, time.Now().Add(j.c.lease))
	if err != nil && !errors.Is(err, holdfast.ErrClosed) {
		k.forced = latest(k.forced, time.Now().Add(3*j.c.lease))
	}
}
