package engine

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/pubsub"
)

// lingerers is a queue with the given number of places, of an engine with hand-over.
func lingerers(places int) *queue {
	h := &Engine{Config: Config{Settings: holdfast.Settings{LocalHandover: 10 * time.Millisecond}, Client: strings.Repeat("c", 36)}}
	k := &keyState{shard: &shard{engine: h}}
	q := &queue{in: &queued{Engine: h}, key: k, ready: true, poke: make(chan struct{}, 1), tickets: make(map[string]*ticket), shared: true}
	k.waiters = &waiters{queue: q}
	for i := range places {
		q.tickets[fmt.Sprint(i)] = &ticket{}
	}
	return q
}

func TestLingering(t *testing.T) {
	for name, c := range map[string]struct {
		held, alone, off bool
		places           int
		lingers          bool
	}{
		"the key is here":               {held: true, lingers: true},
		"several wait":                  {places: 2, lingers: true},
		"one waits":                     {places: 1},
		"nobody waits":                  {},
		"the key stays here":            {held: true, places: 9, alone: true},
		"local hand-over is turned off": {held: true, places: 9, off: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := lingerers(c.places)
			if c.held {
				q.key.hold = &hold{}
			}
			if c.off {
				q.in.LocalHandover = 0
			}
			q.shared = !c.alone
			require.Equal(t, c.lingers, q.lingering(time.Now()))
			require.Equal(t, c.lingers, !q.lingerFrom.IsZero())
		})
	}
}

// Those outside linger once, from the arrival of the first.
func TestLingeringEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := lingerers(2)
		require.True(t, q.lingering(time.Now()))
		require.Equal(t, time.Now().Add(linger), q.alarm(time.Now()))
		time.Sleep(linger - time.Nanosecond)
		require.True(t, q.lingering(time.Now()))
		time.Sleep(time.Nanosecond)
		require.False(t, q.lingering(time.Now()))

		q.outside = []*ticket{{w: newWaiter(Terms{})}}
		require.Len(t, q.takeOutside(), 1)
		require.True(t, q.lingering(time.Now()), "the next linger again")

		q.key.hold = &hold{}
		clear(q.tickets)
		require.True(t, q.lingering(time.Now()))
		q.key.hold = nil
		q.in.departs(q.key)
		require.Len(t, q.poke, 1, "the loop looks at once when the key has gone")
		require.False(t, q.lingering(time.Now()))
	})
}

func TestLongOwners(t *testing.T) {
	q := lingerers(0)
	for _, count := range []int{manyEnter - 1, manyEnter} {
		for range count {
			q.outside = append(q.outside, &ticket{w: newWaiter(Terms{})})
		}
		for i, ticket := range q.takeOutside() {
			require.Equal(t, count >= manyEnter, len(ticket.owner) > longest, "%d of %d: %s", i, count, ticket.owner)
			require.Regexp(t, "^"+q.in.Client+":0[0-9]+$", ticket.owner)
			require.Same(t, ticket, q.tickets[ticket.owner])
			require.True(t, q.in.signed(ticket.owner))
		}
	}
	require.Len(t, q.tickets, 2*manyEnter-1, "all owners differ")
	require.Equal(t, q.in.Client+":0"+strings.Repeat("0", 26)+"7", longOwner(q.in.Client+":07"))

	tried := &ticket{w: newWaiter(Terms{}), owner: "tried"}
	q.outside = []*ticket{tried}
	for range manyEnter {
		q.outside = append(q.outside, &ticket{w: newWaiter(Terms{})})
	}
	q.takeOutside()
	require.Equal(t, "tried", tried.owner, "a waiter that has tried before keeps its owner")
}

// The place of a later waiter says nothing of the oldest, if one between them has given up.
func TestHeartbeatsAskForThePlaceOfTheOldest(t *testing.T) {
	inboxes := pubsub.New(redistest.Start(t).Client(t), slog.New(slog.DiscardHandler))
	defer inboxes.Close()
	q := lingerers(0)
	q.inbox, q.verify = inboxes.Subscribe("k"), true
	for i := range mostOwners + 9 {
		w, owner := newWaiter(Terms{}), fmt.Sprint(i)
		w.ticket = &ticket{queue: q, w: w, owner: owner, entered: true}
		q.tickets[owner] = w.ticket
		w.places = make(chan int, 1)
		q.key.push(w)
	}
	asked := q.ask()
	require.Len(t, asked, 2)
	require.Equal(t, "0", asked[0].Owners[0])
	require.True(t, asked[0].Place)
	require.Len(t, asked[1].Owners, 9)
	require.False(t, asked[1].Place)
}

func TestSignedOwners(t *testing.T) {
	d, other := lingerers(0).in, lingerers(0).in
	other.secret[0] = 1 // of the same client
	for range 100 {
		owner := d.newSignedOwner()
		require.LessOrEqual(t, len(owner), longest)
		require.True(t, d.signed(owner), owner)
		require.True(t, d.signed(longOwner(owner)))
		require.False(t, other.signed(owner))
		require.False(t, d.signed(owner+"0"))
		require.False(t, d.signed(owner[:len(owner)-1]))
		require.False(t, d.signed("x"+owner[1:]))
		require.False(t, d.signed(strings.Replace(owner, ":0", ":01", 1)), "of another attempt")
	}
	for _, owner := range []string{
		"", d.newOwner(), d.Client, d.Client + ":", d.Client + ":0", d.Client + ":0" + strings.Repeat("0", 100), d.Client + ":0" + d.sign(d.Client+":0"),
		d.Client + ":0" + strings.Repeat("0", 200) + d.newSignedOwner()[len(d.Client)+2:],
	} {
		require.False(t, d.signed(owner), owner)
	}
}
