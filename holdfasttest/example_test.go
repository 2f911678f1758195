package holdfasttest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
)

// Shop is a service that locks.
type Shop struct {
	Locks holdfast.Locker
	Stock int
}

var ErrBusy = errors.New("busy, please come back later")

// Sell sells one piece of sku 42, if the customer pays.
func (s *Shop) Sell(ctx context.Context, pay func(context.Context) error) error {
	err := s.Locks.Do(ctx, "shop:sku:42", func(ctx context.Context) error {
		if err := pay(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx) // the lock may be lost: leave the stock alone
		}
		s.Stock--
		return nil
	}, holdfast.WaitAtMost(3*time.Second))
	if errors.Is(err, holdfast.ErrNotAcquired) || errors.Is(err, holdfast.ErrUnavailable) {
		return ErrBusy
	}
	return err
}

// Another process has the lock for longer than a customer waits.
func TestSell_Busy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, shop := newShop(t)
		release, err := locks.Hold("shop:sku:42")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := shop.Sell(t.Context(), paid); err != ErrBusy {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
		release()
		if err := shop.Sell(t.Context(), paid); err != nil || shop.Stock != 9 {
			t.Errorf("got %v, stock %d", err, shop.Stock)
		}
	})
}

// The lock is lost while the customer pays.
func TestSell_LockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, shop := newShop(t)
		err := shop.Sell(t.Context(), func(context.Context) error { return locks.Lose("shop:sku:42") })
		if !errors.Is(err, holdfast.ErrLost) || shop.Stock != 10 {
			t.Errorf("got %v, stock %d", err, shop.Stock)
		}
	})
}

// Redis is unavailable before the sale, and then fails during one.
func TestSell_RedisIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks, shop := newShop(t)
		locks.Outage(time.Hour)
		if err := shop.Sell(t.Context(), paid); err != ErrBusy {
			t.Errorf("got %v", err)
		}
		locks.Outage(0) // back

		err := shop.Sell(t.Context(), func(ctx context.Context) error {
			locks.Outage(time.Hour)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

func newShop(t *testing.T) (*holdfasttest.Locker, *Shop) {
	locks, err := holdfasttest.New()
	if err != nil {
		t.Fatal(err)
	}
	return locks, &Shop{Locks: locks, Stock: 10}
}

func paid(context.Context) error { return nil }

func Example() {
	locks, err := holdfasttest.New()
	if err != nil {
		panic(err)
	}
	shop := Shop{Locks: locks, Stock: 10}
	ctx := context.Background()
	fmt.Println(shop.Sell(ctx, paid), shop.Stock)
	fmt.Println(shop.Sell(ctx, func(context.Context) error { return locks.Lose("shop:sku:42") }))
	// Output:
	// <nil> 9
	// holdfast: lease of "shop:sku:42": lease lost: the lease is no longer ours
	// holdfast: unlock "shop:sku:42": lease lost: the lease is no longer ours
}
