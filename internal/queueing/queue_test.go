package queueing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/pubsub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nowhere is a backend that no call may reach.
type nowhere struct{ Backend }

func (nowhere) Calls() *calls.Calls                        { return calls.New(time.Minute, nil) }
func (nowhere) Abandoned(string)                           {}
func (nowhere) Drain(context.Context, func(string, error)) {}
func (nowhere) Close()                                     {}

// lingerers is a queue with the given number of places, of an engine with handover.
func lingerers(t *testing.T, places int) *queue {
	c, err := engine.Configure("test", "New", nil, nil)
	require.NoError(t, errors.Join(err, c.Check()))
	c.LockerID = strings.Repeat("c", 36)
	d := newDiscipline(nowhere{}, c, Config{})
	t.Cleanup(func() { require.NoError(t, d.engine.Close()) })
	q := &queue{discipline: d, key: d.engine.NewKey("k"), ready: true, poke: make(chan struct{}, 1), tickets: make(map[string]*ticket), foreign: true}
	q.key.SetState(q)
	for i := range places {
		q.tickets[fmt.Sprint(i)] = &ticket{}
	}
	return q
}

// holdBriefly makes the key held, for a short time.
func (q *queue) holdBriefly() {
	t := engine.Terms{Lease: time.Second, MaxHold: engine.Fixed}
	q.key.Lock()
	defer q.key.Unlock()
	q.engine.AdoptGrant(q.engine.NewHold(q.key, "owner", t, time.Now(), wire.AcquireReply{}, nil), q.key.NewWaiter(t, nil, 0))
}

// lingers is lingering, which needs the key's mutex held.
func (q *queue) lingers() bool {
	q.key.Lock()
	defer q.key.Unlock()
	return q.lingering(time.Now())
}

func TestLingering(t *testing.T) {
	for name, c := range map[string]struct {
		held, alone, off bool
		places           int
		lingers          bool
	}{
		"the key is here":              {held: true, lingers: true},
		"several wait":                 {places: 2, lingers: true},
		"one waits":                    {places: 1},
		"nobody waits":                 {},
		"the key stays here":           {held: true, places: 9, alone: true},
		"local handover is turned off": {held: true, places: 9, off: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := lingerers(t, c.places)
			if c.held {
				q.holdBriefly()
			}
			if c.off {
				q.engine.LocalHandover = 0
			}
			q.foreign = !c.alone
			require.Equal(t, c.lingers, q.lingers())
			require.Equal(t, c.lingers, !q.lingerFrom.IsZero())
		})
	}
}

// Those outside linger once, from the arrival of the first.
func TestLingeringEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := lingerers(t, 2)
		require.True(t, q.lingers())
		require.Equal(t, time.Now().Add(linger), q.alarm(time.Now()))
		time.Sleep(linger - time.Nanosecond)
		require.True(t, q.lingers())
		time.Sleep(time.Nanosecond)
		require.False(t, q.lingers())

		q.outside = []*ticket{{w: q.key.NewWaiter(engine.Terms{}, nil, 0)}}
		require.Len(t, q.takeOutside(), 1)
		require.True(t, q.lingers(), "the next linger again")

		q.holdBriefly()
		clear(q.tickets)
		require.True(t, q.lingers())
		time.Sleep(time.Second)
		q.key.Lock()
		q.BeforeRelease(q.key)
		q.key.Unlock()
		require.Len(t, q.poke, 1, "the loop looks at once when the key has gone")
		require.False(t, q.lingers())
	})
}

func TestLongOwners(t *testing.T) {
	q := lingerers(t, 0)
	for _, count := range []int{manyEnter - 1, manyEnter} {
		for range count {
			q.outside = append(q.outside, &ticket{w: q.key.NewWaiter(engine.Terms{}, nil, 0)})
		}
		for i, ticket := range q.takeOutside() {
			require.Equal(t, count >= manyEnter, len(ticket.owner) > longest, "%d of %d: %s", i, count, ticket.owner)
			require.Regexp(t, "^"+q.engine.LockerID+":0[0-9]+$", ticket.owner)
			require.Same(t, ticket, q.tickets[ticket.owner])
			require.True(t, q.signed(ticket.owner))
		}
	}
	require.Len(t, q.tickets, 2*manyEnter-1, "all owners differ")
	require.Equal(t, q.engine.LockerID+":0"+strings.Repeat("0", 26)+"7", longOwner(q.engine.LockerID+":07"))

	tried := &ticket{w: q.key.NewWaiter(engine.Terms{}, nil, 0), owner: "tried"}
	q.outside = []*ticket{tried}
	for range manyEnter {
		q.outside = append(q.outside, &ticket{w: q.key.NewWaiter(engine.Terms{}, nil, 0)})
	}
	q.takeOutside()
	require.Equal(t, "tried", tried.owner, "a waiter that has tried before keeps its owner")
}

// The place of a later waiter says nothing of the oldest, if one between them has given up.
func TestHeartbeatsAskForThePlaceOfTheOldest(t *testing.T) {
	inboxes := pubsub.New(redistest.Start(t).Client(t), slog.New(slog.DiscardHandler))
	defer inboxes.Close()
	q := lingerers(t, 0)
	q.inbox, q.verify = inboxes.Subscribe("k"), true
	for i := range maxOwners + 9 {
		w, owner := q.key.NewWaiter(engine.Terms{}, func(int) {}, 0), fmt.Sprint(i)
		q.key.Push(w)
		q.tickets[owner] = q.newTicket(w)
		q.tickets[owner].owner, q.tickets[owner].entered = owner, true
	}
	asked := q.nextHeartbeats()
	require.Len(t, asked, 2)
	require.Equal(t, "0", asked[0].Owners[0])
	require.True(t, asked[0].Place)
	require.Len(t, asked[1].Owners, 9)
	require.False(t, asked[1].Place)
}

func TestSignedOwners(t *testing.T) {
	d, other := lingerers(t, 0).discipline, lingerers(t, 0).discipline
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
		"", d.engine.NewOwner(), d.engine.LockerID, d.engine.LockerID + ":", d.engine.LockerID + ":0", d.engine.LockerID + ":0" + strings.Repeat("0", 100), d.engine.LockerID + ":0" + d.sign(d.engine.LockerID+":0"),
		d.engine.LockerID + ":0" + strings.Repeat("0", 200) + d.newSignedOwner()[len(d.engine.LockerID)+2:],
	} {
		require.False(t, d.signed(owner), owner)
	}
}
