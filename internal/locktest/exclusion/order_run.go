package exclusion

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const (
	orderProcesses  = 8
	orderGoroutines = 8
)

func init() { RegisterChild("order", orderChild) }

// orderChild locks and unlocks k on many goroutines until it hears a line.
// Args: the address of Redis, whether locks are handed over locally.
func orderChild(d Kind, p *Parent) error {
	client, err := p.Client(p.Args[0])
	if err != nil {
		return err
	}
	o := Options{Lease: Long, Stale: Long} // a place lost on a busy machine would be none in the order
	if p.Args[1] == "false" {
		o.Handover = new(time.Duration)
	}
	locker, err := d.New(client, o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	errs := make(chan error, orderGoroutines)
	for range orderGoroutines {
		go func() {
			for ctx.Err() == nil {
				if err := locker.Do(context.Background(), "k", func(context.Context) error { return nil }); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	p.Hear()
	stop()
	for range orderGoroutines {
		if err := <-errs; err != nil {
			return err
		}
	}
	if err := locker.Close(); err != nil {
		return err
	}
	client.Close()
	return nil
}

// RunOrder has eight processes of eight goroutines take 10 000 grants of one key, 2 000
// in short tests, half of the processes with local hand-over, and requires that they come in the
// order in which the waiters have entered, without one exception. Both orders are
// read from what Redis says that it does.
func RunOrder(t *testing.T, d Kind) {
	grants := 10_000
	if testing.Short() {
		grants = 2_000
	}
	o := orderRun(t, d, grants, nil)
	require.Empty(t, o.wrong)
	o.inOrder(t, "k")

	// An order among the waiters of one process, or without runs, proves little.
	q, turns := o.locks["k"], 0
	for i, owner := range q.granted[1:] {
		if clientOf(owner) != clientOf(q.granted[i]) {
			turns++
		}
	}
	t.Logf("%d grants, %d in runs, %d from process to process", len(q.granted), q.inRuns, turns)
	require.Greater(t, turns, grants/20)
	require.Greater(t, q.inRuns, grants/200)
}

// RunOrderControl makes a short run with a client that moves the last of the queue to its
// front. The check must find that.
func RunOrderControl(t *testing.T, d Kind) {
	o := orderRun(t, d, 500, func(s *redistest.Server) {
		_, _ = s.TryDo("EVAL", `if redis.call('LLEN', KEYS[1]) > 2 then redis.call('LMOVE', KEYS[1], KEYS[1], 'RIGHT', 'LEFT') end`, "1", QueueOf("k"))
	})
	require.NotEmpty(t, o.wrong)
}

// inOrder requires that all were granted in the order in which they had entered.
func (o *orderCheck) inOrder(t testing.TB, key string) {
	t.Helper()
	q := o.locks[key]
	require.Empty(t, q.waiting)
	for i, owner := range q.entered {
		require.Less(t, i, len(q.granted))
		require.Equal(t, owner, q.granted[i], "%d", i)
	}
	require.Equal(t, len(q.entered), len(q.granted))
}

// orderRun returns after that many grants. It calls disturb all the time.
func orderRun(t *testing.T, d Kind, grants int, disturb func(*redistest.Server)) *orderCheck {
	s := redistest.Start(t)
	o := newOrderCheck("k")
	enough, once := make(chan struct{}), sync.Once{}
	stop := s.Monitor(t, func(c redistest.Command) {
		o.see(c)
		if len(o.locks["k"].granted) >= grants {
			once.Do(func() { close(enough) })
		}
	})
	children := make([]*Child, orderProcesses)
	for i := range children {
		children[i] = StartChild(t, "order", s.Addr(), strconv.FormatBool(i%2 == 0))
	}
	limit := time.After(10 * Patience)
	for waiting := true; waiting; {
		select {
		case <-enough:
			waiting = false
		case <-limit:
			require.FailNow(t, "too few grants")
		case <-time.After(10 * time.Millisecond):
			if disturb != nil {
				disturb(s)
			}
		}
	}
	for _, c := range children {
		c.Say("stop")
	}
	for _, c := range children {
		c.Await()
	}
	stop()
	return o
}

// RunLongQueue has 2 000 wait for one key, of four clients, and requires that they
// are served in their order.
func RunLongQueue(t *testing.T, d Kind) {
	const clients, each = 4, 500
	s := redistest.Start(t)
	o := newOrderCheck("k")
	stop := s.Monitor(t, o.see)
	ctx, cancel := context.WithTimeout(context.Background(), 5*Patience)
	defer cancel()
	before := Lock(t, d.Open(t, s.Client(t), Options{Lease: Long}), ctx, "k")
	errs := make(chan error, clients*each)
	for range clients {
		locker := d.Open(t, s.Client(t), Options{Lease: Long})
		for range each {
			go func() { errs <- locker.Do(ctx, "k", func(context.Context) error { return nil }) }()
		}
	}
	Await(t, func() bool { return Number(t, s, "LLEN", QueueOf("k")) == clients*each })
	require.NoError(t, before.Unlock(ctx))
	for range clients * each {
		require.NoError(t, <-errs)
	}
	stop()
	require.Empty(t, o.wrong)
	require.Len(t, o.locks["k"].entered, clients*each)
	o.inOrder(t, "k")
}
