package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/redis"
	"github.com/holdfast-go/holdfast/fair"
)

// open returns a counter on an embedded server.
func open(t *testing.T) *counter {
	at, stop, err := redis.StartEmbedded()
	require.NoError(t, err)
	t.Cleanup(stop)
	client, err := at.Connect()
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &counter{client: client, id: "test"}
}

func TestCustomerIsServedOnce(t *testing.T) {
	c := open(t)
	for _, customer := range []int{2, 0, 1} {
		require.NoError(t, c.serve(t.Context(), customer, 0))
	}
	require.ErrorContains(t, c.serve(t.Context(), 0, 0), "customer 1 was served before")
	served, err := c.served(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int{2, 0, 1}, served)
}

// Whose turn is lost before the write leaves the list as it was.
func TestLostTurnWritesNothing(t *testing.T) {
	c := open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("lost")
	timer := time.AfterFunc(time.Millisecond, func() { cancel(lost) })
	defer timer.Stop()
	require.ErrorIs(t, c.serve(ctx, 0, time.Hour), lost)
	_, err := c.served(ctx)
	require.ErrorIs(t, err, lost, "no command is sent")
	served, err := c.served(t.Context())
	require.NoError(t, err)
	require.Empty(t, served)
}

// The queue is where the parent looks for it.
func TestLastInTheQueue(t *testing.T) {
	c := open(t)
	last := func() string {
		owner, err := c.last(t.Context())
		require.NoError(t, err)
		return owner
	}
	require.Empty(t, last())
	l, err := fair.New(c.client)
	require.NoError(t, err)
	defer l.Close()
	held, err := l.Lock(t.Context(), c.lockKey())
	require.NoError(t, err)
	require.Empty(t, last(), "who holds the lock does not wait")

	got := make(chan *fair.Lease, 1)
	go func() {
		next, err := l.Lock(t.Context(), c.lockKey())
		if err == nil {
			got <- next
		}
		close(got)
	}()
	require.Eventually(t, func() bool { return last() != "" }, 10*time.Second, time.Millisecond)
	waits := last()
	require.NoError(t, held.Unlock(t.Context()))
	next := <-got
	require.NotNil(t, next)
	require.Equal(t, waits, next.Owner())
	require.Empty(t, last())
	require.NoError(t, next.Unlock(t.Context()))
}

func TestAccountFindsWhatIsWrong(t *testing.T) {
	p := &process{number: 1}
	done := visit{place: through, process: p}
	for name, c := range map[string]struct {
		list   string
		visits []visit
		want   account
		clean  bool
		says   string
	}{
		"in order":      {"0 1 2 ", []visit{done, done, done}, account{served: 3}, true, "All is well"},
		"overtaken":     {"1 2 0 ", []visit{done, done, done}, account{served: 3, overtaken: 1, inversions: 2}, false, "WRONG: somebody"},
		"reversed":      {"2 1 0 ", []visit{done, done, done}, account{served: 3, overtaken: 2, inversions: 3}, false, "WRONG: somebody"},
		"lost":          {"0 2 ", []visit{done, done, done}, account{served: 2, lost: 1}, false, "WRONG: somebody"},
		"twice":         {"0 1 2 1 ", []visit{done, done, done}, account{served: 3, double: 1}, false, "WRONG: somebody"},
		"nobody we had": {"0 1 2 3 ", []visit{done, done, done}, account{served: 3, double: 1}, false, "WRONG: somebody"},
		"dead": {"2 ", []visit{{place: waiting, process: p, gone: true}, {place: atCounter, process: p, gone: true}, done},
			account{served: 1, goneWaiting: 1, goneServing: 1}, true, "All is well"},
		"served and unheard": {"1 0 2 ", []visit{{place: atCounter, process: p, gone: true}, done, done},
			account{served: 3, overtaken: 1, inversions: 1}, false, "WRONG: somebody"},
		"early end": {"0 ", []visit{done, {place: waiting, process: p}, {}}, account{served: 1, unserved: 2}, true, "Stopped early"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDay(options{}, redis.Server{}, open(t), makeCustomers(3), nil)
			d.visits = c.visits
			set := d.counter.client.B().Set().Key(d.counter.servedKey()).Value(c.list).Build()
			require.NoError(t, d.counter.client.Do(t.Context(), set).Error())
			a, err := d.account()
			require.NoError(t, err)
			require.Equal(t, c.clean, a.clean())
			var out bytes.Buffer
			a.print(&out, guardFair)
			require.Contains(t, out.String(), c.says)
			a.lines = nil
			require.Equal(t, c.want, *a)
		})
	}
}
