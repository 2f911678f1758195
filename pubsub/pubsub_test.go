package pubsub

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

func TestSubscribeConfirmsCountsAndDrops(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client rueidis.Client) {
		s := open(t, client, patient)
		a := s.Subscribe("ch{a}:\r\n\x00")
		require.Zero(t, a.State().Messages)
		st := await(t, a, "live", live)
		require.Equal(t, State{Epoch: 1, Live: true}, st)

		require.EqualValues(t, 1, publish(t, client, "ch{a}:\r\n\x00"))
		require.EqualValues(t, 1, publish(t, client, "ch{a}:\r\n\x00"))
		await(t, a, "told", func(st State) bool { return st.Messages == 2 })

		late := s.Subscribe("ch{a}:\r\n\x00")
		require.Equal(t, State{Epoch: 1, Live: true}, late.State(), "a confirmed channel needs no further confirmation")
		<-late.Wake()

		a.Close()
		a.Close()
		require.Equal(t, State{}, a.State())
		require.EqualValues(t, 1, publish(t, client, "ch{a}:\r\n\x00"))
		await(t, late, "told", func(st State) bool { return st.Messages == 1 })
		late.Close()
		awaitDropped(t, client, "ch{a}:\r\n\x00")
	})
}

// A thousand listeners of a channel cost one subscription, and nothing while they wait.
func TestListenersShareOneSubscription(t *testing.T) {
	srv := redistest.Start(t)
	// Without rueidis' own pings.
	client := srv.Client(t, named, func(o *rueidis.ClientOption) { o.Dialer.KeepAlive = -1 })
	pings := calls(t, srv, "ping")
	s := open(t, client, withPace(unasked), patient)
	subs := make([]*Subscription, 1000)
	for i := range subs {
		subs[i] = s.Subscribe("shared")
	}
	awaitLive(t, subs...)
	require.EqualValues(t, 1, locktest.Listeners(t, srv, "shared"))
	require.Equal(t, 1, clients(t, srv, "pubsub"))
	require.Equal(t, 1, calls(t, srv, "subscribe"))

	publish(t, client, "shared")
	for _, sub := range subs {
		await(t, sub, "told", func(st State) bool { return st.Messages == 1 })
	}
	for _, sub := range subs[1:] {
		sub.Close()
	}
	publish(t, client, "shared")
	await(t, subs[0], "told", func(st State) bool { return st.Messages == 2 })
	require.Zero(t, calls(t, srv, "unsubscribe"))
	require.Equal(t, pings+1, calls(t, srv, "ping"), "one for the connection")
	subs[0].Close()
	awaitDropped(t, client, "shared")
	require.Equal(t, 1, calls(t, srv, "unsubscribe"))
	locktest.Await(t, func() bool { return known(s) == 1 }, "its own channel stays a little longer")
}

func TestTenThousandChannels(t *testing.T) {
	srv := redistest.Start(t)
	client := srv.Client(t, named, slow)
	s := open(t, client, patient)
	subs := make([]*Subscription, 10_000)
	srv.Pause() // until all are there
	for i := range subs {
		subs[i] = s.Subscribe(fmt.Sprint("channel:", i))
	}
	srv.Resume()
	awaitLive(t, subs...)
	require.Equal(t, 1, clients(t, srv, "pubsub"))
	require.LessOrEqual(t, calls(t, srv, "subscribe"), 10_000/batch+1, "full batches, and its own channel")

	for _, sub := range subs {
		select {
		case <-sub.Wake():
		default:
		}
	}
	publish(t, client, "channel:4711")
	await(t, subs[4711], "told", func(st State) bool { return st.Messages == 1 })
	for i, sub := range subs {
		select {
		case <-sub.Wake():
			require.Equal(t, 4711, i, "woken by another channel's message")
		default:
		}
	}

	srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	for _, sub := range subs {
		await(t, sub, "live again", func(st State) bool { return st.Live && st.Epoch == 2 })
	}
	for _, sub := range subs {
		sub.Close()
	}
	locktest.Await(t, func() bool { return len(locktest.Strings(t, srv, "PUBSUB", "CHANNELS")) == 0 })
}

// Once Live, the server knows the channel, whatever was opened and closed before.
func TestG4_LiveIsNeverStale(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client rueidis.Client) {
		s := open(t, client, patient)
		other := s.Subscribe("other")
		defer other.Close()
		for i := range 300 {
			for range i % 4 {
				sub := s.Subscribe("busy")
				if i%3 == 0 {
					runtime.Gosched()
				}
				if i%5 == 0 {
					awaitLive(t, sub)
				}
				sub.Close()
			}
			sub := s.Subscribe("busy")
			awaitLive(t, sub)
			require.EqualValues(t, 1, publish(t, client, "busy"), "round %d", i)
			await(t, sub, "told", func(st State) bool { return st.Messages >= 1 })
			sub.Close()
		}
		awaitDropped(t, client, "busy")
	})
}

// Every message whose publishing began after Live was seen is counted, or a new epoch says that some may be missing.
func TestG4_NoMessageIsLostAfterConfirmation(t *testing.T) {
	srv := redistest.Start(t)
	client := srv.Client(t, named)
	s := open(t, client, withPace(func(p *pace) { p.most = time.Millisecond }))

	var whole, broken int
	for i := 0; whole < 60 || broken < 15; i++ {
		var begun, goal atomic.Uint64
		var publisher sync.WaitGroup
		publisher.Go(func() {
			for g := uint64(0); g == 0 || begun.Load() < g; g = goal.Load() {
				begun.Add(1)
				_ = client.Do(t.Context(), client.B().Publish().Channel("news").Message("0").Build()).Error()
			}
		})
		sub := s.Subscribe("news")
		seen := await(t, sub, "live", live)
		first := begun.Load() // later ones begin after Live
		goal.Store(first + 10)
		if i%4 == 0 {
			srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
		}
		publisher.Wait()
		st := await(t, sub, "told", func(st State) bool {
			return !st.Live || st.Epoch != seen.Epoch || st.Messages-seen.Messages >= begun.Load()-first
		})
		if st.Live && st.Epoch == seen.Epoch {
			whole++
		} else {
			broken++
		}
		sub.Close()
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, client rueidis.Client) {
		s := New(client, nil)
		patient(s)
		sub := s.Subscribe("a")
		awaitLive(t, sub)
		var all sync.WaitGroup
		for range 4 {
			all.Go(s.Close)
		}
		all.Wait()
		await(t, sub, "told of the end", func(st State) bool { return !st.Live && st.Epoch == 1 })
		awaitDropped(t, client, "a")

		late := s.Subscribe("a")
		require.Equal(t, State{}, late.State())
		late.Close()
		sub.Close()
	})
}

// New does nothing, and Close leaves nothing.
func TestCloseDropsTheConnection(t *testing.T) {
	bothProtocols(t, func(t *testing.T, srv *redistest.Server, speak func(*rueidis.ClientOption)) {
		client := srv.Client(t, named, speak)
		before, goroutines := clients(t, srv, "normal"), runtime.NumGoroutine()
		s := New(client, nil)
		require.Equal(t, goroutines, runtime.NumGoroutine())
		awaitLive(t, s.Subscribe("a"))
		require.Equal(t, 1, clients(t, srv, "pubsub"))
		s.Close()
		locktest.Await(t, func() bool {
			return clients(t, srv, "pubsub") == 0 && clients(t, srv, "normal") == before
		})
	})
}
