package interop

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/locktest/exclusion"
)

// work takes and gives back locks until told to stop, and records each lease, as
// Work.java does. It answers how many it kept to their ends, and whether all.
func (g *goAgent) work(c command) answer {
	g.opened.Do(func() { g.recorder, g.openErr = exclusion.NewRecorder(c.File, c.Name) })
	if g.openErr != nil {
		return failed(c, g.openErr)
	}
	kept, all := int64(0), true
	for !g.stopped.Load() {
		called := locktest.Clock()
		l, err := acquire(context.Background(), g.kinds[c.Kind], wayTo(c.Keys[rand.IntN(len(c.Keys))]))
		if slices.ContainsFunc([]error{holdfast.ErrNotAcquired, holdfast.ErrUnavailable, holdfast.ErrUnknown},
			func(known error) bool { return errors.Is(err, known) }) {
			continue
		}
		if err != nil {
			return failed(c, err)
		}
		record := g.recorder.Granted(l, false, called)
		record.Hold(context.Background(), holdTime())
		record.Ends()
		switch err = l.Unlock(context.Background()); {
		case err == nil:
			kept++
		case errors.Is(err, holdfast.ErrLost):
			all = false
		}
	}
	return done(c, all, kept, "")
}

// wayTo is one of the ways to take a lock.
func wayTo(key string) command {
	c := command{Op: "tryLock", Key: key}
	switch rand.IntN(8) {
	case 0:
	case 1:
		c.Patience = ms(upTo(50 * time.Millisecond))
	case 2:
		c.Patience = ms(upTo(time.Second))
	default:
		c.Op = "lock"
	}
	return c
}

func holdTime() time.Duration {
	if rand.IntN(10) == 0 {
		return upTo(20 * time.Millisecond)
	}
	return upTo(time.Millisecond)
}
