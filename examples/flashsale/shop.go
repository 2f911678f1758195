package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
)

const (
	items = 3
	wait  = 10 * time.Second // at most, for the lock of an item
	tries = 3                // at most, of placing an order whose outcome is unknown
)

type order struct{ number, item, quantity int }

// orderOf returns the order of a buyer: the same in each process and run.
func orderOf(number int) order {
	random := rand.New(rand.NewPCG(1, uint64(number)))
	return order{number, random.IntN(items), []int{1, 1, 1, 2, 3}[random.IntN(5)]}
}

// shop sells each item under a lock of its own.
type shop struct {
	redis  *demo.Redis
	locker holdfast.Locker // nil: without any lock
	dieAt  int             // the order in whose critical section this process dies; -1: none
}

// place books an order as sold, or as sold out. It may be repeated after any error.
func (s *shop) place(ctx context.Context, o order) error {
	if s.locker == nil {
		return s.sell(ctx, o, 0)
	}
	return s.locker.Do(ctx, s.key("lock", o.item), func(ctx context.Context) error {
		return s.sell(ctx, o, holdfast.LeaseFrom(ctx).Fence())
	}, holdfast.WaitAtMost(wait))
}

// sell is the critical section: read, decide, write.
func (s *shop) sell(ctx context.Context, o order, fence int64) error {
	stock, booked, err := s.update(ctx, o, fence)
	if err != nil || booked {
		return err
	}
	if o.number == s.dieAt {
		demo.Die()
	}
	units := 0
	if stock >= o.quantity {
		units = o.quantity
	}
	_, _, err = s.update(ctx, o, fence, "stock", strconv.Itoa(stock-units), o.field(), strconv.Itoa(units))
	return err
}

// serve places an order, and shows what each error of a lock means.
func (s *shop) serve(ctx context.Context, o order) (err error) {
	for range tries {
		err = s.place(ctx, o)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, holdfast.ErrNotAcquired): // others held the lock the whole time: nothing was done
			return fmt.Errorf("order %d: too many buyers, come again later: %w", o.number, err)
		case errors.Is(err, holdfast.ErrUnavailable): // Redis was away for longer than a lease: nothing was done
			return fmt.Errorf("order %d: the shop is closed: %w", o.number, err)
		case errors.Is(err, holdfast.ErrLost), errors.Is(err, holdfast.ErrUnknown), errors.Is(err, errLate):
			// The lease ended too early, or its fate is unknown, so the order may be in the book. To place it
			// again does no harm and settles it.
		default: // another try does not help
			return err
		}
	}
	return err
}

// table stands for the shop's database: one Redis hash for each item, with its stock, its order book and the
// largest fence so far. A smaller fence comes from a holder that has since lost the lock. In SQL:
//
//	UPDATE stock SET amount = $1, fence = $2 WHERE sku = $3 AND fence <= $2
//
// The first read carries the fence as well: after it, no write of an earlier holder can change what was read.
var table = rueidis.NewLuaScript(`
if tonumber(redis.call('HGET', KEYS[1], 'fence') or '0') > tonumber(ARGV[1]) then
  return false
end
redis.call('HSET', KEYS[1], 'fence', ARGV[1], unpack(ARGV, 3))
return redis.call('HMGET', KEYS[1], 'stock', ARGV[2])`)

var errLate = errors.New("refused: a newer holder of the lock was here")

// update sets fields. It returns the stock, and whether the order is in the book.
func (s *shop) update(ctx context.Context, o order, fence int64, set ...string) (stock int, booked bool, err error) {
	args := append([]string{strconv.FormatInt(fence, 10), o.field()}, set...)
	row, err := table.Exec(ctx, s.redis, []string{s.key("item", o.item)}, args).ToArray()
	if rueidis.IsRedisNil(err) {
		return 0, false, errLate
	}
	if err != nil {
		return 0, false, err
	}
	left, err := row[0].AsInt64()
	return int(left), !row[1].IsNil(), err
}

func (s *shop) key(what string, item int) string {
	return fmt.Sprintf("flashsale:%s:%s:%d", s.redis.Run, what, item)
}

func (o order) field() string { return "order:" + strconv.Itoa(o.number) }
