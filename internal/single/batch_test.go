package single

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/queueing"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const lease = time.Minute

// together makes a batch of the first call and the others.
func together[Q, A any](t *testing.T, b *batcher[Q, A], first Q, others ...func() wire.Result[A]) []wire.Result[A] {
	t.Helper()
	b.underWay.Add(few)
	defer b.underWay.Add(-few)
	c, index := b.Join(struct{}{}, first, false)
	require.Zero(t, index)
	came := make([]chan wire.Result[A], len(others))
	for i, call := range others {
		came[i] = make(chan wire.Result[A], 1)
		go func() { came[i] <- call() }()
		require.Eventually(t, func() bool { return b.Size(c) == i+2 }, redistest.Patience, time.Millisecond)
	}
	b.Seal(c)
	b.begin(c)
	<-c.Came
	require.NoError(t, c.Err)
	all := c.Answers[:1:1]
	for i := range came {
		all = append(all, <-came[i])
	}
	return all
}

// Acquires that come at once are one call, and so are releases. Each gets its own answer.
func TestBatch_Queued(t *testing.T) {
	s := redistest.Start(t)
	client := s.Client(t)
	c, err := engine.Configure("fair", "New", nil, nil)
	require.NoError(t, err)
	c.Lease, c.LocalHandover, c.LockerID = lease, 0, "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01"
	require.NoError(t, c.Check())
	own := queueing.Config{WaiterTTL: 5 * time.Second, GrantLease: 6 * time.Second}
	q := newFair(client, c, own)
	e := queueing.New(q, c, own)
	defer e.Close()
	ctx := context.Background()
	owner := func(n string) string { return c.LockerID + ":0" + n }
	s.Do(t, "SET", "wrong", "a string")
	acquire := func(key, n string) func() wire.Result[wire.AcquireReply] {
		return func() wire.Result[wire.AcquireReply] {
			a, err := q.Acquire(ctx, wire.AcquireRequest{Key: key, Owner: owner(n), Lease: lease})
			return wire.Result[wire.AcquireReply]{Value: a, Err: err}
		}
	}
	hold := func(key, n string) wire.FairReleaseRequest {
		return wire.FairReleaseRequest{ReleaseRequest: wire.ReleaseRequest{Key: key, Owner: owner(n)}}
	}
	release := func(key, n string) func() wire.Result[wire.FairReply] {
		return func() wire.Result[wire.FairReply] {
			p, err := q.Release(ctx, hold(key, n))
			return wire.Result[wire.FairReply]{Value: p, Err: err}
		}
	}

	got := together(t, q.acquires, wire.AcquireRequest{Key: "a", Owner: owner("1"), Lease: lease},
		acquire("b", "2"), acquire("a", "3"), acquire("wrong", "4"))
	require.True(t, got[0].Value.OK && got[1].Value.OK)
	require.NoError(t, got[2].Err)
	require.Greater(t, got[2].Value.Remaining, lease/2)
	require.ErrorContains(t, got[3].Err, "WRONGTYPE")

	ended := together(t, q.releases, hold("a", "1"), release("wrong", "4"), release("free", "6"))
	require.Equal(t, wire.Result[wire.FairReply]{Value: wire.FairReply{Ours: true}}, ended[0])
	require.ErrorContains(t, ended[1].Err, "WRONGTYPE")
	require.Equal(t, wire.Result[wire.FairReply]{}, ended[2])
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// While few calls are under way, each goes out alone; the next one joins a batch.
func TestBatch_Few(t *testing.T) {
	begun, goOn := make(chan bool), make(chan bool)
	s := newBatcher(server{redis: wire.NewRedis(nil, wire.RedisSettings{})}, func(_ context.Context, ask int) (int, error) {
		begun <- true
		<-goOn
		return ask, nil
	}, nil)
	c, _ := s.Join(struct{}{}, 0, false)
	var all sync.WaitGroup
	for i := range few {
		all.Go(func() {
			answer, err := s.do(context.Background(), i)
			require.NoError(t, err)
			require.Equal(t, i, answer)
		})
		<-begun
	}
	all.Go(func() {
		answer, err := s.do(context.Background(), few)
		require.NoError(t, err)
		require.Equal(t, -1, answer)
	})
	require.Eventually(t, func() bool { return s.Size(c) == 2 }, redistest.Patience, time.Millisecond)
	s.Seal(c)
	c.Answers = []wire.Result[int]{{}, {Value: -1}}
	close(c.Came)
	close(goOn)
	all.Wait()
	require.Zero(t, s.underWay.Load())
}
