package engine

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// gatherers is a line with the given number of places, of an engine that hands over.
func gatherers(places int) (*Engine, *queue, *line) {
	h := &Engine{Config: Config{Handover: 10 * time.Millisecond}, client: strings.Repeat("c", 36)}
	l := &line{ready: true, poke: make(chan struct{}, 1), tickets: make(map[string]*ticket), shared: true}
	for i := range places {
		l.tickets[fmt.Sprint(i)] = &ticket{}
	}
	return h, &queue{head: &head{line: l}}, l
}

func TestWhoGathers(t *testing.T) {
	for name, c := range map[string]struct {
		held, alone, off bool
		places           int
		gathers          bool
	}{
		"the key is here":               {held: true, gathers: true},
		"several wait":                  {places: 2, gathers: true},
		"one waits":                     {places: 1},
		"nobody waits":                  {},
		"the key stays here":            {held: true, places: 9, alone: true},
		"local hand-over is turned off": {held: true, places: 9, off: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, q, l := gatherers(c.places)
			if c.held {
				q.hold = &hold{}
			}
			if c.off {
				h.Handover = 0
			}
			l.shared = !c.alone
			require.Equal(t, c.gathers, h.gathering(q, l, time.Now()))
			require.Equal(t, c.gathers, !l.gathered.IsZero())
		})
	}
}

// Company is waited for once, from the first who wants to enter on.
func TestGatheringEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, q, l := gatherers(2)
		require.True(t, h.gathering(q, l, time.Now()))
		require.Equal(t, time.Now().Add(gather), l.alarm(time.Now()))
		time.Sleep(gather - time.Nanosecond)
		require.True(t, h.gathering(q, l, time.Now()))
		time.Sleep(time.Nanosecond)
		require.False(t, h.gathering(q, l, time.Now()))

		l.outside = []*ticket{{w: newWaiter(Terms{})}}
		require.Len(t, h.next(l), 1)
		require.True(t, h.gathering(q, l, time.Now()), "the next wait anew")

		q.hold = &hold{}
		clear(l.tickets)
		require.True(t, h.gathering(q, l, time.Now()))
		q.hold = nil
		l.departs()
		require.Len(t, l.poke, 1, "the line looks at once when the key has gone")
		require.False(t, h.gathering(q, l, time.Now()))
	})
}

func TestLongOwners(t *testing.T) {
	h, _, l := gatherers(0)
	for _, count := range []int{manyEnter - 1, manyEnter} {
		for range count {
			l.outside = append(l.outside, &ticket{w: newWaiter(Terms{})})
		}
		for i, ticket := range h.next(l) {
			require.Equal(t, count >= manyEnter, len(ticket.owner) > longest, "%d of %d: %s", i, count, ticket.owner)
			require.Regexp(t, "^"+h.client+":0[0-9]+$", ticket.owner)
			require.Same(t, ticket, l.tickets[ticket.owner])
		}
	}
	require.Len(t, l.tickets, 2*manyEnter-1, "no two alike")
	require.Equal(t, h.client+":0"+strings.Repeat("0", 26)+"7", longOwner(h.client+":07"))

	tried := &ticket{w: newWaiter(Terms{}), owner: "tried"}
	l.outside = []*ticket{tried}
	for range manyEnter {
		l.outside = append(l.outside, &ticket{w: newWaiter(Terms{})})
	}
	h.next(l)
	require.Equal(t, "tried", tried.owner, "who has tried before keeps its owner")
}
