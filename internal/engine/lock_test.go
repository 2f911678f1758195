package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/watchdog"
)

// granting is a backend that grants the key, after it has done something.
type granting struct {
	obedient
	before func()
}

func (g granting) Acquire(context.Context, wire.AcquireRequest) (wire.AcquireReply, error) {
	g.before()
	return wire.AcquireReply{OK: true}, nil
}

func (granting) SetEntries(context.Context, string, string, wire.Entries) (bool, error) {
	return true, nil
}

func (granting) BeforeRelease(*Key)                   {}
func (granting) AfterRelease(*Key, wire.ReleaseReply) {}
func (granting) HoldLost(*Key, *Hold)                 {}
func (granting) Settle(*Key)                          {}
func (granting) Next(*Key, *Hold) *Waiter             { return nil }

// A caller whose context ends while Redis grants the key gets no lease, and the key is released.
func TestF4_NoLeaseForACallerThatHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		g := granting{newObedient(), cancel}
		lease, err := newEngine(t, g, asItIs).Lock(ctx, "k")
		require.Nil(t, lease)
		require.ErrorIs(t, err, holdfast.ErrNotAcquired)
		require.ErrorIs(t, err, context.Canceled)
		<-g.released
	})
}

// A reader that shares a hold gets no lease, either, if its context ends meanwhile.
func TestF4_NoShareForACallerThatHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := granting{newObedient(), func() {}}
		e := newEngine(t, g, func(c *Config) { c.Holds = SharedHolds })
		first, err := e.Lock(t.Context(), "k")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		lease, err := e.Lock(endsWhenAsked{ctx, cancel}, "k")
		require.Nil(t, lease)
		require.ErrorIs(t, err, context.Canceled)
		synctest.Wait()
		require.NoError(t, first.Unlock(t.Context()))
		<-g.released
	})
}

// endsWhenAsked ends when it is asked for a value, as the look for a bound lease does.
type endsWhenAsked struct {
	context.Context
	cancel func()
}

func (c endsWhenAsked) Value(key any) any {
	c.cancel()
	return c.Context.Value(key)
}

// A nested entry that has been unlocked is not reported again when its section is lost.
func TestAnUnlockedNestedEntryIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := make(chan string, 9)
		e := newEngine(t, granting{newObedient(), func() {}}, func(c *Config) {
			c.Observer = &holdfast.Observer{Lost: func(l holdfast.LostEvent) { lost <- l.Key }}
		})
		first, err := e.Lock(t.Context(), "k")
		require.NoError(t, err)
		bound := first.Bind(t.Context())
		second, err := e.Lock(bound, "k")
		require.NoError(t, err)
		require.NoError(t, second.Unlock(t.Context()))
		e.lose(bound.(*boundContext).entry.section.hold, watchdog.ErrNotOurs)
		synctest.Wait()
		require.Len(t, lost, 1)
	})
}

// lagging is a backend whose replicas lag, and which says without a call that it cannot have several keys at once.
type lagging struct{ granting }

func (lagging) SetEntries(_ context.Context, _, _ string, entries wire.Entries) (bool, error) {
	if entries.Count > 1 {
		return true, nil
	}
	return true, wire.Judge(errors.New("0 of 1 replicas"), wire.Unknown)
}

func (lagging) AcquireAll(context.Context, []wire.AcquireRequest) (bool, error) {
	return false, nil
}

// An Unlock of a nested entry needs no replicas, and what no server was asked ends no outage.
func TestObserver_WhatIsNoNewsOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		b := lagging{granting{newObedient(), func() {}}}
		b.calls.PerServer = func(name string) string { return name }
		e := newEngine(t, b, func(c *Config) {
			c.Observer = &holdfast.Observer{
				OutageBegan: func(o holdfast.OutageBeganEvent) { told = append(told, "began "+o.Server) },
				OutageEnded: func(o holdfast.OutageEndedEvent) { told = append(told, "ended "+o.Server) },
			}
		})
		outer, err := e.Lock(t.Context(), "k")
		require.NoError(t, err)
		inner, err := e.Lock(outer.Bind(t.Context()), "k")
		require.NoError(t, err)
		require.NoError(t, inner.Unlock(t.Context()))
		synctest.Wait()
		require.Empty(t, told)

		e.ObserveCall(t.Context(), "down", errors.New("connection reset"))
		_, err = e.TryLockAll(t.Context(), []string{"down", "up"}, nil)
		require.ErrorIs(t, err, holdfast.ErrNotAcquired)
		synctest.Wait()
		require.Equal(t, []string{"began down"}, told)
	})
}
