package campaign_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/multilock"
)

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
	for time.Now().Before(a.c.stop) && !a.c.found.Load() {
		ctx, cancel := context.WithCancel(context.Background())
		if d, leaves := a.upTo(2*a.c.lease), a.one(4); leaves {
			time.AfterFunc(d, cancel)
		}
		a.call(ctx)
		cancel()
		if d, rests := a.upTo(time.Second), a.one(10); rests {
			time.Sleep(d)
		}
	}
}

// call makes one call, and unlocks.
func (a *caller) call(ctx context.Context) {
	var opts []holdfast.LockOption
	switch {
	case a.one(a.c.fixed):
		opts = append(opts, holdfast.FixedLease(a.c.lease/2))
	case a.one(8):
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

func (a *caller) locker() holdfast.Locker { return *a.c.lockers[a.process].Load() }

// lock locks, holds for a while, perhaps nested, and unlocks.
func (a *caller) lock(ctx context.Context, name string, opts []holdfast.LockOption) {
	how := a.r.IntN(3)
	w := &waiter{who: a.who, process: a.process, queues: how > 0}
	a.c.judge.waits(name, w)
	var l *holdfast.Lease
	var err error
	switch how {
	case 0:
		l, err = a.locker().TryLock(ctx, name, opts...)
	case 1:
		l, err = a.locker().TryLockFor(ctx, name, a.c.lease, opts...)
	default:
		l, err = a.locker().Lock(ctx, name, opts...)
	}
	hold, pause, nested := a.section(), a.upTo(500*time.Millisecond), a.r.IntN(4)
	if err != nil {
		a.c.judge.refused(name, w, err)
		time.Sleep(pause)
		return
	}
	h := a.c.judge.served(name, w, l, l.Fence())
	a.c.side.Go(func() { a.c.judge.watch(h) })
	if nested == 0 {
		a.nest(l.Bind(ctx), name)
	}
	a.rest(hold, l.Done())
	a.c.judge.unlock(a.leaving(ctx), name, h)
}

// leaving is the context of an Unlock: that of a caller that leaves, once in three times.
func (a *caller) leaving(ctx context.Context) context.Context {
	if !a.one(3) {
		return context.WithoutCancel(ctx)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	return gone
}

// nest enters up to three times more, and leaves in any order.
func (a *caller) nest(ctx context.Context, name string) {
	var all []*holdfast.Lease
	for range 1 + a.r.IntN(3) {
		l, err := a.locker().TryLockFor(ctx, name, a.c.lease)
		if err != nil {
			break
		}
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
func (a *caller) rest(d time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	}
}

func (a *caller) do(ctx context.Context, name string, opts []holdfast.LockOption) {
	w := &waiter{who: a.who, process: a.process, queues: true}
	hold, ran := a.section(), false
	a.c.judge.waits(name, w)
	err := a.locker().Do(ctx, name, func(ctx context.Context) error {
		ran = true
		l := holdfast.LeaseFrom(ctx)
		h := a.c.judge.served(name, w, l, l.Fence())
		a.c.side.Go(func() { a.c.judge.watch(h) })
		a.rest(hold, ctx.Done())
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
	a.rest(hold, set.Done())
	for i, name := range names {
		a.c.judge.leave(name, hs[i])
	}
	_ = set.Unlock(context.WithoutCancel(ctx))
}

func (a *caller) force(ctx context.Context) {
	a.c.judge.force(+1, nil)
	_, err := a.locker().ForceUnlock(ctx, "forced")
	a.c.judge.force(-1, err)
}

// leave notes that a holder is about to unlock by itself.
func (j *judge) leave(name string, h *holder) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.keys[name].holders, h)
}

// takes notes the begin or the end of a call that takes several keys.
func (j *judge) takes(names []string, more int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range names {
		j.keys[name].taking += more
	}
}

// force notes the begin or the end of a ForceUnlock. Without an answer, it may come late.
func (j *judge) force(more int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.keys["forced"]
	k.forcing += more
	k.forced = latest(k.forced, time.Now())
	if err != nil && !errors.Is(err, holdfast.ErrClosed) {
		k.forced = latest(k.forced, time.Now().Add(3*j.c.lease))
	}
}
