package main

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/redis"
)

// open returns a shop on an embedded server whose guard only counts how deep it
// is entered.
func open(t *testing.T, stock map[string]int) (s *shop, deepest *int) {
	at, stop, err := redis.StartEmbedded()
	require.NoError(t, err)
	t.Cleanup(stop)
	client, err := at.Connect()
	require.NoError(t, err)
	t.Cleanup(client.Close)
	depth, deepest := 0, new(int)
	s = &shop{client: client, id: "test", guard: func(ctx context.Context, _ string, f func(context.Context) error) error {
		depth++
		defer func() { depth-- }()
		*deepest = max(*deepest, depth)
		return f(ctx)
	}}
	require.NoError(t, s.open(stock))
	return s, deepest
}

func TestOrderIsPlacedOnce(t *testing.T) {
	s, deepest := open(t, map[string]int{"a": 3})
	for _, c := range []struct {
		id              string
		quantity, units int
		found           bool
		left            int
	}{
		{"1", 2, 2, false, 1},
		{"1", 2, 2, true, 1},
		{"2", 2, 0, false, 1},
		{"2", 2, 0, true, 1},
		{"3", 1, 1, false, 0},
	} {
		p, err := s.place(t.Context(), order{ID: c.id, SKU: "a", Quantity: c.quantity}, nil)
		require.NoError(t, err)
		require.Equal(t, c.units, p.Units)
		require.Equal(t, c.found, p.Found)
		left, _, err := s.item(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, c.left, left)
	}
	_, book, err := s.item(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, map[string]int{"1": 2, "2": 0, "3": 1}, book)
	require.Equal(t, 2, *deepest, "booking the stock enters the lock again")

	_, err = s.place(t.Context(), order{ID: "4", SKU: "b", Quantity: 1}, nil)
	require.ErrorContains(t, err, "the stock of b is gone")
}

// An order whose lock is lost before the write leaves everything as it was.
func TestLostLockWritesNothing(t *testing.T) {
	s, _ := open(t, map[string]int{"a": 3})
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("lost")
	_, err := s.place(ctx, order{ID: "1", SKU: "a", Quantity: 1}, func() { cancel(lost) })
	require.ErrorIs(t, err, lost)
	left, book, err := s.item(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, 3, left)
	require.Empty(t, book)
}

func TestAuditFindsWhatIsWrong(t *testing.T) {
	orders := []order{{ID: "1", SKU: "a", Quantity: 2}, {ID: "2", SKU: "a", Quantity: 2}, {ID: "3", SKU: "a", Quantity: 2}}
	for name, c := range map[string]struct {
		fields   []string // of the item, which had 4
		reported []bool
		double   int
		want     audit
		clean    bool
	}{
		"clean":    {[]string{"stock", "0", "order:1", "2", "order:2", "2", "order:3", "0"}, []bool{true, true, true}, 0, audit{sold: 2, soldOut: 1, units: 4}, true},
		"unheard":  {[]string{"stock", "2", "order:1", "2"}, []bool{false, false, false}, 0, audit{sold: 1, unplaced: 2, units: 2}, true},
		"oversold": {[]string{"stock", "0", "order:1", "2", "order:2", "2", "order:3", "2"}, []bool{true, true, true}, 0, audit{sold: 3, units: 6, oversold: 2, adrift: 2}, false},
		"lost":     {[]string{"stock", "2", "order:1", "2"}, []bool{true, true, false}, 0, audit{sold: 1, lost: 1, unplaced: 1, units: 2}, false},
		"double":   {[]string{"stock", "2", "order:1", "2"}, []bool{true, false, false}, 1, audit{sold: 1, double: 1, unplaced: 2, units: 2}, false},
		"torn":     {[]string{"stock", "1", "order:1", "2"}, []bool{true, false, false}, 0, audit{sold: 1, unplaced: 2, units: 2, adrift: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			stock := map[string]int{"a": 4}
			s, _ := open(t, stock)
			set := s.client.B().Arbitrary("HSET").Keys(s.itemKey("a")).Args(c.fields...).Build()
			require.NoError(t, s.client.Do(t.Context(), set).Error())
			a, err := s.audit(&sale{orders: orders, reported: c.reported, double: c.double}, stock)
			require.NoError(t, err)
			c.want.orders = 3
			require.Equal(t, c.want, *a)
			require.Equal(t, c.clean, a.clean())
		})
	}
}

func TestWaits(t *testing.T) {
	a := &audit{}
	for i := range 200 {
		a.waits = append(a.waits, time.Duration(i+1)*time.Millisecond)
	}
	for percent, want := range map[int]int{50: 100, 99: 198, 100: 200} {
		require.Equal(t, strconv.Itoa(want)+"ms", a.wait(percent).String())
	}
	a.waits = a.waits[:1]
	require.Equal(t, time.Millisecond, a.wait(50))
}

// On a terminal one line is drawn again and again, and others push it down.
func TestProgressOnTerminal(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 4)
	p.terminal = true
	p.show()
	require.Empty(t, out.String(), "the sale has not begun")
	p.start()
	p.add(2)
	p.add(0)
	p.show()
	p.say("killed")
	p.end()
	const line = "\r\x1b[K[##########..........] 2 of 4 orders: 1 sold, 1 sold out, 0.0s"
	require.Equal(t, line+"\r\x1b[Kkilled\n"+line+"\n", out.String())
}
