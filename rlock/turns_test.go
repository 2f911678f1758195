package rlock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// contend lets goroutines of a locker go in and out of key until stop, and
// reports each hold in Redis (its owner) once.
func contend(wg *sync.WaitGroup, l *rlock.Locker, key string, goroutines int, stop <-chan struct{}, held func(owner string)) {
	for range goroutines {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				e, err := l.Lock(context.Background(), key)
				if err != nil {
					return
				}
				held(e.Owner())
				_ = e.Unlock(context.Background())
			}
		})
	}
}

func TestG4_ProcessesTakeTurns(t *testing.T) {
	const lockers, rounds = 4, 25
	s := redistest.Start(t)
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		last    string
		tenures [lockers]int
		all     int
	)
	stop := make(chan struct{})
	done := sync.OnceFunc(func() { close(stop) })
	for i := range lockers {
		l, err := rlock.New(s.Client(t), rlock.WithLocalHandover(2*time.Millisecond))
		require.NoError(t, err)
		defer l.Close()
		contend(&wg, l, "hot", 4, stop, func(owner string) {
			mu.Lock()
			defer mu.Unlock()
			if owner == last {
				return
			}
			last = owner
			tenures[i]++
			if all++; all >= lockers*rounds {
				done()
			}
		})
	}
	wg.Wait()
	for i, n := range tenures {
		require.Greater(t, n, rounds/4, "locker %d of %v", i, tenures)
	}
}

// A mere listener counts as another process. It must not cost a lease for each turn.
func TestG4_IdleListenersDoNotHoldUpTheTurn(t *testing.T) {
	s := redistest.Start(t)
	l, err := rlock.New(s.Client(t), rlock.WithLocalHandover(time.Millisecond), rlock.WithLease(time.Minute))
	require.NoError(t, err)
	defer l.Close()
	for range 5 {
		idle, drop := s.Client(t).Dedicate()
		defer drop()
		subscribed := make(chan struct{})
		idle.SetPubSubHooks(rueidis.PubSubHooks{
			OnMessage:      func(rueidis.PubSubMessage) {},
			OnSubscription: func(rueidis.PubSubSubscription) { close(subscribed) },
		})
		require.NoError(t, idle.Do(context.Background(), idle.B().Subscribe().Channel("redisson_lock__channel:{hot}").Build()).Error())
		<-subscribed
	}
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		owners = map[string]bool{}
	)
	stop := make(chan struct{})
	done := sync.OnceFunc(func() { close(stop) })
	began := time.Now()
	contend(&wg, l, "hot", 4, stop, func(owner string) {
		mu.Lock()
		defer mu.Unlock()
		if owners[owner] = true; len(owners) == 20 {
			done()
		}
	})
	wg.Wait()
	require.Less(t, time.Since(began), time.Minute, "less than one lease for 20 turns")
}
