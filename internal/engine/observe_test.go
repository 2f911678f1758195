package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A locker without an observer pays for none.
func TestObserverAbsentAllocatesNothing(t *testing.T) {
	e := &Engine{}
	k := &Key{stripe: &stripe{engine: e}, Name: "k"}
	h := &Hold{Key: k, extras: &noExtras}
	h.newSection()
	en, why, ctx, since := &h.first.first, errors.New("any"), context.Background(), time.Duration(0)
	o := newObserver(e, nil)
	require.Nil(t, o)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		o.failed("k", why, o.now())
		o.acquired(en, holdfast.ByCall, since)
		o.ended(en, o.heldFor(en), nil)
		o.sectionEnded(&h.first, why)
		o.renewed(h, 0, nil)
		e.Woken("k")
		e.noteWaiterCount(k.Name, 1, 1)
		e.ObserveCall(ctx, "k", why)
		o.close()
	}))
	require.Zero(t, en.began)
}

// An event costs one allocation.
func TestObserverEventAllocates(t *testing.T) {
	e := &Engine{}
	e.observer = newObserver(e, &holdfast.Observer{Waiters: func(holdfast.WaitersEvent) {}})
	defer e.observer.close()
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { e.noteWaiterCount("k", 1, 1) }), 1.0)
}

// Each server of a Redis Cluster has its outages. One that nobody asks any more has none.
func TestObserverOutagesByServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Engine{Config: Config{Settings: holdfast.Settings{Lease: time.Minute}}, Calls: calls.New(time.Minute, nil)}
		e.Calls.PerServer = func(key string) string { return "server of " + key }
		var told []any
		e.observer = newObserver(e, &holdfast.Observer{
			OutageBegan: func(e holdfast.OutageBeganEvent) { told = append(told, e) },
			OutageEnded: func(e holdfast.OutageEndedEvent) { told = append(told, e) },
		})
		tells := func(key string, err error, want ...any) {
			t.Helper()
			e.ObserveCall(t.Context(), key, err)
			synctest.Wait()
			require.Equal(t, want, told)
			told = nil
		}
		away := errors.New("connection reset")
		tells("a", nil)
		tells("a", away, holdfast.OutageBeganEvent{Server: "server of a", Err: away})
		time.Sleep(time.Second)
		tells("a", away)
		tells("b", nil)
		tells("b", context.DeadlineExceeded, holdfast.OutageBeganEvent{Server: "server of b", Err: calls.ErrNoAnswer})
		tells("b", nil, holdfast.OutageEndedEvent{Server: "server of b"})
		time.Sleep(time.Minute)
		tells("b", nil)
		time.Sleep(time.Second)
		tells("b", nil, holdfast.OutageEndedEvent{Server: "server of a", Lasted: time.Minute + 2*time.Second})

		gone, cancel := context.WithCancel(t.Context())
		cancel()
		e.ObserveCall(gone, "a", away) // the caller gave up
		late, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		_, unsent := wire.NewRedis(nil, wire.RedisSettings{}).Release(late, wire.ReleaseRequest{Key: "a", Owner: "owner"})
		tells("a", nil)
		tells("a", away, holdfast.OutageBeganEvent{Server: "server of a", Err: away})
		e.ObserveCall(late, "a", unsent) // nobody was asked
		tells("a", away)
		tells("a", refusal{}, holdfast.OutageEndedEvent{Server: "server of a"}) // an answer
		tells("a", away, holdfast.OutageBeganEvent{Server: "server of a", Err: away})
		time.Sleep(time.Second)
		e.observer.close()
		require.Equal(t, []any{holdfast.OutageEndedEvent{Server: "server of a", Lasted: time.Second}}, told)
	})
}

type refusal struct{ error }

func (refusal) Outcome() wire.Outcome { return wire.Refused }

// The events of readers go to the observer of the writers: both halves count their times from one instant.
func TestObserver_TheHalvesHaveOneClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		half := func(o *holdfast.Observer) *Engine {
			return newEngine(t, newObedient(), func(c *Config) { c.Observer = o })
		}
		waited := make(chan time.Duration, 1)
		writers := half(&holdfast.Observer{Acquired: func(e holdfast.AcquiredEvent) { waited <- e.Waited }})
		time.Sleep(time.Second)
		readers := half(nil)
		Pair(readers, writers)
		k, start := readers.NewKey("k"), time.Now()
		a := Attempt{Start: start, Hold: readers.NewHold(k, "reader", Terms{Lease: time.Minute}, start, wire.AcquireReply{}, nil)}
		k.Lock()
		require.NotNil(t, readers.Adopt(a, nil))
		k.Unlock()
		require.Zero(t, <-waited)
	})
}
