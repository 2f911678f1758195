package holdfasttest_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/rlock"
)

// virtualRedis is a server inside the bubble of a test.
type virtualRedis struct {
	server *miniredis.Miniredis
	away   atomic.Bool
}

func newVirtualRedis(t *testing.T) *virtualRedis {
	r := &virtualRedis{server: miniredis.NewMiniRedis()} // never started: it would listen on a socket
	r.server.ClockTTL(true)                              // leases end by the time of the bubble
	t.Cleanup(r.server.Close)
	return r
}

// process is a locker with a client of its own, as each process has.
func (r *virtualRedis) process(t *testing.T, opts ...holdfast.Option) holdfast.Locker {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{"redis:6379"}, // any
		ForceSingleClient: true,
		DisableCache:      true,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			if r.away.Load() {
				return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
			}
			return r.server.Dial()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	locker, err := rlock.New(client, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locker.Close(); client.Close() })
	return locker
}

// goAway closes all connections and refuses new ones until comeBack. The server forgets nothing.
func (r *virtualRedis) goAway() {
	r.away.Store(true)
	r.server.Close()
}

func (r *virtualRedis) comeBack() { r.away.Store(false) }

// Another process sells at the same time. This one waits, but no longer than a customer does.
func TestSell_TwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := newVirtualRedis(t)
		here, there := &Shop{redis.process(t), 10}, &Shop{redis.process(t), 10}
		for _, c := range []struct {
			takes, waits time.Duration
			want         error
		}{
			{2 * time.Second, 2 * time.Second, nil},
			{10 * time.Minute, 3 * time.Second, ErrBusy},
		} {
			go there.Sell(t.Context(), func(context.Context) error { time.Sleep(c.takes); return nil })
			synctest.Wait() // until the other process holds the lock
			began := time.Now()
			err := here.Sell(t.Context(), paid)
			if waited := time.Since(began); err != c.want || waited != c.waits {
				t.Errorf("after %v: %v", waited, err)
			}
		}
		time.Sleep(10 * time.Minute) // until the other is done
	})
}

// Redis forgets the lock while the customer pays.
func TestSell_RealLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := newVirtualRedis(t)
		shop := &Shop{redis.process(t), 10}
		err := shop.Sell(t.Context(), func(ctx context.Context) error {
			redis.server.FlushAll()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, holdfast.ErrLost) || shop.Stock != 10 {
			t.Errorf("got %v, stock %d", err, shop.Stock)
		}
	})
}

// Redis is unavailable before the sale, and then fails during one.
func TestSell_RealRedisIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := newVirtualRedis(t)
		shop := &Shop{redis.process(t), 10}
		redis.goAway()
		if err := shop.Sell(t.Context(), paid); err != ErrBusy {
			t.Errorf("got %v", err)
		}
		redis.comeBack()

		began := time.Now()
		err := shop.Sell(t.Context(), func(ctx context.Context) error {
			redis.goAway()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, holdfast.ErrLost) || time.Since(began) > holdfast.DefaultLease {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
