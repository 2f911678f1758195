package engine

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/scripts"
)

// obedient is a backend and a discipline that release whatever they are told to.
type obedient struct {
	Backend
	careless
	calls    *calls.Calls
	released chan string
}

func (o obedient) Calls() *calls.Calls { return o.calls }
func (obedient) Lost(string, string)   {}

func (o obedient) Release(_ context.Context, h *Hold, _ int64) (scripts.Released, error) {
	o.released <- h.Owner
	return scripts.Released{Ours: true}, nil
}

type obedientDiscipline struct{ obedient }

func (obedientDiscipline) Lost(*Key, *Hold) {}

// Redis may have granted a key to a waiter here before the reply to an attempt arrives: what the
// attempt got is over. A grant that comes later than a hold ends that hold.
func TestG1_AKeyHasOneHold(t *testing.T) {
	c, err := Configure("test", "New", nil, nil)
	require.NoError(t, errors.Join(err, c.Check()))
	o := obedient{calls: calls.New(time.Minute, nil), released: make(chan string, 1)}
	e := New(o, obedientDiscipline{o}, c)
	defer e.Close()
	k := e.NewKey("k")
	hold := func(owner string) *Hold {
		return e.NewHold(k, owner, Terms{Lease: c.Lease}, time.Now(), scripts.Acquired{}, nil)
	}
	k.Lock()
	first := e.Take(k, Attempt{Hold: hold("first")}, 0)
	require.NotNil(t, first)
	require.Nil(t, e.Take(k, Attempt{Hold: hold("second")}, 0))
	k.Unlock()
	require.Equal(t, "second", <-o.released)
	require.NoError(t, first.Err())

	why := errors.New("granted to another")
	k.Lock()
	third := e.Occupy(hold("third"), NewWaiter(Terms{}, nil, 0), why)
	k.Unlock()
	require.ErrorIs(t, first.Err(), why)
	require.NoError(t, third.Err())
	require.True(t, k.HeldBy("third"))
	require.False(t, k.HeldBy("first"))
}
