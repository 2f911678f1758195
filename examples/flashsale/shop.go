package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	stockField = "stock"
	orderField = "order:" // before the id; the value is the units sold, 0 if sold out

	keepFor     = time.Hour       // the books of a sale whose parent died
	callTimeout = 5 * time.Second // of one call to Redis
)

// shop places orders. Each item is one Redis hash: a field for its stock, and
// its order book, a field for each order.
type shop struct {
	client rueidis.Client
	id     string // tells this sale's keys from others'
	guard  guard  // nil in the parent, which places no orders
}

// guard runs f so that nobody else runs one for the same key.
type guard func(ctx context.Context, key string, f func(context.Context) error) error

func (s *shop) itemKey(sku string) string { return "flashsale:" + s.id + ":item:" + sku }
func (s *shop) lockKey(sku string) string { return "flashsale:" + s.id + ":lock:" + sku }

// placed is what became of an order.
type placed struct {
	Units int           // sold; 0: sold out
	Found bool          // it was in the book before
	Wait  time.Duration // for the lock
}

// place sells o or writes it down as sold out, once: an order that is in the
// book is only reported. It may be repeated after any error. inside, if not nil,
// is called in the critical section, between look and write.
func (s *shop) place(ctx context.Context, o order, inside func()) (placed, error) {
	var p placed
	asked := time.Now()
	err := s.guard(ctx, s.lockKey(o.SKU), func(ctx context.Context) (err error) {
		p.Wait = time.Since(asked)
		p.Units, p.Found, err = s.read(ctx, o.SKU, orderField+o.ID)
		if err == nil && !p.Found {
			p.Units, err = s.book(ctx, o, inside)
		}
		return err
	})
	return p, err
}

// book takes o's units from the stock, if there are enough, and writes o into
// the order book. It locks the item itself, and re-enters where ctx holds it.
func (s *shop) book(ctx context.Context, o order, inside func()) (units int, err error) {
	err = s.guard(ctx, s.lockKey(o.SKU), func(ctx context.Context) error {
		stock, found, err := s.read(ctx, o.SKU, stockField)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("the stock of %s is gone from Redis", o.SKU)
		}
		if inside != nil {
			inside()
		}
		if stock >= o.Quantity {
			units = o.Quantity
		}
		// One command, so that stock and book cannot part whenever the process dies.
		_, err = s.do(ctx, s.client.B().Hset().Key(s.itemKey(o.SKU)).FieldValue().
			FieldValue(stockField, strconv.Itoa(stock-units)).
			FieldValue(orderField+o.ID, strconv.Itoa(units)).Build())
		return err
	})
	return units, err
}

func (s *shop) read(ctx context.Context, sku, field string) (n int, found bool, err error) {
	m, err := s.do(ctx, s.client.B().Hget().Key(s.itemKey(sku)).Field(field).Build())
	if rueidis.IsRedisNil(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	text, err := m.ToString()
	if err != nil {
		return 0, false, err
	}
	n, err = strconv.Atoi(text)
	return n, true, err
}

// do runs one command, unless ctx is over, which it is when the lock is lost.
// Once sent, the command is waited for also if ctx ends: a write must not be
// overtaken by the unlock.
func (s *shop) do(ctx context.Context, command rueidis.Completed) (rueidis.RedisMessage, error) {
	if ctx.Err() != nil {
		return rueidis.RedisMessage{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	return s.client.Do(ctx, command).ToMessage()
}

// open fills the stock.
func (s *shop) open(stock map[string]int) error {
	var commands []rueidis.Completed
	for sku, units := range stock {
		key := s.itemKey(sku)
		commands = append(commands,
			s.client.B().Hset().Key(key).FieldValue().FieldValue(stockField, strconv.Itoa(units)).Build(),
			s.client.B().Expire().Key(key).Seconds(int64(keepFor/time.Second)).Build())
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for _, result := range s.client.DoMulti(ctx, commands...) {
		if err := result.Error(); err != nil {
			return err
		}
	}
	return nil
}

// item returns all of an item: what is left, and the units sold to each order.
func (s *shop) item(ctx context.Context, sku string) (left int, book map[string]int, err error) {
	m, err := s.do(ctx, s.client.B().Hgetall().Key(s.itemKey(sku)).Build())
	if err != nil {
		return 0, nil, err
	}
	fields, err := m.AsStrMap()
	if err != nil {
		return 0, nil, err
	}
	book = make(map[string]int, len(fields))
	for field, text := range fields {
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, nil, fmt.Errorf("%s of %s: %w", field, sku, err)
		}
		if id, ok := strings.CutPrefix(field, orderField); ok {
			book[id] = n
		} else {
			left = n
		}
	}
	return left, book, nil
}

// close removes the books, one by one: the client of a Cluster panics on keys of
// different slots. What cannot be removed expires.
func (s *shop) close(stock map[string]int) {
	for sku := range stock {
		_, _ = s.do(context.Background(), s.client.B().Del().Key(s.itemKey(sku)).Build())
	}
}
