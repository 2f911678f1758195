package single

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/batch"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/racing"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

type acquiring = batch.Call[struct{}, wire.AcquireRequest, wire.Result[wire.AcquireReply]]

// batchRig is an engine with batches that the test makes and sends.
type batchRig struct {
	*testing.T
	server  *redistest.Server
	way     *redistest.Proxy
	backend *RLock
	engine  *engine.Engine
	lease   time.Duration
	calls   atomic.Int64 // that the server has seen
}

func newBatchRig(t *testing.T, change ...func(*engine.Config)) *batchRig {
	s := redistest.Start(t)
	r := &batchRig{T: t, server: s, way: redistest.NewProxy(t, s.Addr()), lease: time.Minute}
	client := s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{r.way.Addr()} })
	c, err := engine.Configure("rlock", "New", nil, nil)
	require.NoError(t, err)
	c.Lease, c.LocalHandover = r.lease, 0
	require.NoError(t, c.Check())
	for _, f := range change {
		f(&c)
	}
	r.backend = newRLock(client, c)
	r.engine = racing.New(r.backend, c)
	r.backend.acquires.underWay.Add(few) // so that no call goes out alone
	r.backend.releases.underWay.Add(few)
	t.Cleanup(func() { _ = r.engine.Close() })
	r.way.OnRequest(func(cmd []string) redistest.Verdict {
		r.calls.Add(1)
		return redistest.Pass
	})
	return r
}

func fenced(c *engine.Config) { c.Fencing = true }

func (r *batchRig) until(what func() bool) {
	r.Helper()
	require.Eventually(r, what, redistest.Patience, time.Millisecond)
}

// tried is the result of a TryLock.
type tried struct {
	lease *holdfast.Lease
	err   error
}

func (r *batchRig) try(ctx context.Context, key string) <-chan tried {
	done := make(chan tried, 1)
	go func() {
		e, err := r.engine.TryLock(ctx, key)
		done <- tried{e, err}
	}()
	return done
}

// first begins a batch with an acquire of the test's own. Others join until it is sent.
func (r *batchRig) first(key, owner string) *acquiring {
	own := wire.AcquireRequest{Key: key, Owner: owner, Lease: r.lease, Fencing: r.engine.Fences(1)}
	c, index := r.backend.acquires.Join(struct{}{}, own, false)
	require.Zero(r, index)
	return c
}

// joined begins TryLocks of keys, which join the batch of first.
func (r *batchRig) joined(c *acquiring, ctx context.Context, keys ...string) (all []<-chan tried) {
	for i, key := range keys {
		all = append(all, r.try(ctx, key))
		r.until(func() bool { return r.backend.acquires.Size(c) == i+2 })
	}
	return all
}

// send sends the batch.
func (r *batchRig) send(c *acquiring) {
	r.backend.acquires.Seal(c)
	r.backend.acquires.begin(c)
}

// unlock unlocks leases in one batch with a release of the test's own, and returns what came of them and of it. between
// happens before the batch is sent.
func (r *batchRig) unlock(own wire.ReleaseRequest, between func(), leases ...*holdfast.Lease) (errs []error, released wire.Result[wire.ReleaseReply]) {
	c, index := r.backend.releases.Join(struct{}{}, own, false)
	require.Zero(r, index)
	var came []chan error
	for i, l := range leases {
		one := make(chan error, 1)
		came = append(came, one)
		go func() { one <- l.Unlock(context.Background()) }()
		r.until(func() bool { return r.backend.releases.Size(c) == i+2 })
	}
	between()
	r.backend.releases.Seal(c)
	r.backend.releases.begin(c)
	for _, one := range came {
		errs = append(errs, <-one)
	}
	<-c.Came
	if c.Err == nil {
		released = c.Answers[0]
	}
	return errs, released
}

// held reports whether Redis has the key.
func (r *batchRig) held(key string) bool {
	return locktest.Exists(r, r.server, key)
}

// Acquires that come at once are one call, and so are releases. Each gets its own answer:
// acquired, held by another, an error.
func TestBatch(t *testing.T) {
	for name, change := range map[string]func(*engine.Config){"plain": func(*engine.Config) {}, "fenced": fenced} {
		t.Run(name, func(t *testing.T) {
			r := newBatchRig(t, change)
			ctx := context.Background()
			r.server.Do(t, "HSET", "others", "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:1", "1")
			r.server.Do(t, "SET", "wrong", "a string")
			require.NoError(t, (<-r.try(ctx, "warm")).err)
			before := r.calls.Load()
			c := r.first("a", "me")
			all := r.joined(c, ctx, "b", "others", "wrong", "c", "spoilt")
			r.send(c)
			b, others, wrong, last, spoilt := <-all[0], <-all[1], <-all[2], <-all[3], <-all[4]
			require.NoError(t, b.err)
			require.NoError(t, last.err)
			require.NoError(t, spoilt.err)
			require.ErrorIs(t, others.err, holdfast.ErrNotAcquired)
			require.Equal(t, wire.Refused, wire.OutcomeOf(wrong.err))
			require.ErrorContains(t, wrong.err, "WRONGTYPE")
			require.True(t, c.Answers[0].Value.OK)
			require.LessOrEqual(t, r.calls.Load(), before+3, "one, one for an old server, and the text of the script")
			for _, key := range []string{"a", "b", "c"} {
				require.True(t, r.held(key))
			}
			if r.engine.Fencing {
				require.Positive(t, b.lease.Fence())
			}

			before = r.calls.Load()
			errs, reply := r.unlock(wire.ReleaseRequest{Key: "a", Owner: "me", Notify: true}, func() {
				r.server.Do(t, "DEL", "c")
				r.server.Do(t, "SET", "spoilt", "a string")
			}, b.lease, last.lease, spoilt.lease)
			require.NoError(t, errs[0])
			require.ErrorIs(t, errs[1], holdfast.ErrLost, "the key was gone")
			require.ErrorContains(t, errs[2], "WRONGTYPE")
			require.True(t, reply.Value.Ours)
			require.LessOrEqual(t, r.calls.Load(), before+3)
			require.False(t, r.held("a") || r.held("b"))
		})
	}
}

// A member with a forbidden key costs the others nothing, and neither does a batch that
// cannot be sent: each member makes its call alone.
func TestBatch_FaultsOfOthers(t *testing.T) {
	ctx := context.Background()
	for name, fault := range map[string]func(r *batchRig) (undo func()){
		"forbidden": func(r *batchRig) func() {
			r.server.Do(r, "ACL", "SETUSER", "default", "resetkeys", "~key*", "~holdfast*")
			return func() { r.server.Do(r, "ACL", "SETUSER", "default", "allkeys") }
		},
		"too late": func(r *batchRig) func() {
			spawn := r.backend.acquires.spawn
			late := func(f func(context.Context)) bool {
				return spawn(func(ctx context.Context) {
					over, cancel := context.WithCancel(ctx)
					cancel()
					f(over)
				})
			}
			r.backend.acquires.spawn, r.backend.releases.spawn = late, late
			return func() {}
		},
		"closed": func(r *batchRig) func() {
			never := func(func(context.Context)) bool { return false }
			r.backend.acquires.spawn, r.backend.releases.spawn = never, never
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newBatchRig(t)
			defer fault(r)()
			c := r.first("foreign", "me")
			all := r.joined(c, ctx, "key1", "key2")
			r.send(c)
			var entries []*holdfast.Lease
			for _, done := range all {
				got := <-done
				require.NoError(t, got.err)
				entries = append(entries, got.lease)
			}
			require.True(t, r.held("key1") && r.held("key2"))

			errs, _ := r.unlock(wire.ReleaseRequest{Key: "foreign", Owner: "me"}, func() {}, entries...)
			require.Equal(t, []error{nil, nil}, errs)
			require.False(t, r.held("key1") || r.held("key2"))
		})
	}
}

// A caller with a context that is over sends nothing, and joins no batch.
func TestBatch_OverBefore(t *testing.T) {
	r := newBatchRig(t)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	c := r.first("a", "me")
	_, err := r.backend.Acquire(over, wire.AcquireRequest{Key: "b", Owner: "me", Lease: time.Minute})
	require.Equal(t, wire.Refused, wire.OutcomeOf(err))
	require.Equal(t, 1, r.backend.acquires.Size(c))
}

// Close waits for batches under way, which are bounded in time. After Close there are none.
func TestBatch_Closing(t *testing.T) {
	r := newBatchRig(t)
	begun, goOn := make(chan bool), make(chan struct{})
	require.True(t, r.backend.acquires.spawn(func(ctx context.Context) {
		_, limited := ctx.Deadline()
		begun <- limited
		<-goOn
	}))
	require.True(t, <-begun)
	closed := make(chan struct{})
	go func() {
		_ = r.engine.Close()
		close(closed)
	}()
	for _, spawn := range []func(func(context.Context)) bool{r.backend.acquires.spawn, r.backend.releases.spawn} {
		r.until(func() bool { return !spawn(func(context.Context) {}) })
	}
	select {
	case <-closed:
		t.Error("Close does not wait")
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	<-closed
}

// Each member of a batch without an answer is in doubt, and undoes its own acquire.
func TestBatch_NoAnswer(t *testing.T) {
	r := newBatchRig(t)
	ctx := context.Background()
	asks := []wire.AcquireRequest{{Key: "warm", Owner: "me", Lease: time.Minute}} // so that Redis knows the script
	require.NoError(t, r.backend.Redis.AcquireEach(ctx, asks, make([]wire.Result[wire.AcquireReply], 1)))
	c := r.first("first", "me")
	all := r.joined(c, ctx, "a", "b")
	swallowed := r.way.SwallowReply(1, func(cmd []string) bool { return slices.Contains(cmd, "b") })
	r.send(c)
	<-swallowed
	for _, done := range all {
		require.ErrorIs(t, (<-done).err, holdfast.ErrUnknown)
	}
	r.until(func() bool { return !r.held("a") && !r.held("b") })
	require.True(t, r.held("first"), "the test's own acquire, which it does not undo")
	require.Equal(t, 4, locktest.Number(t, r.server, "DBSIZE"), "two tombstones, and the keys of the test")
}

// Any member may leave at once, also the one that sends the batch, as it goes out on a goroutine of its own. The
// others get their answers. An acquire that arrives after its owner was given up takes nothing.
func TestBatch_Leaving(t *testing.T) {
	r := newBatchRig(t)
	made, goOn := make(chan bool), make(chan bool)
	many := r.backend.acquires.many
	r.backend.acquires.many = func(ctx context.Context, asks []wire.AcquireRequest, results []wire.Result[wire.AcquireReply]) error {
		made <- true
		<-goOn
		return many(ctx, asks, results)
	}
	c := r.first("a", "me")
	came := make(chan error)
	join := func(ctx context.Context, key string) {
		size := r.backend.acquires.Size(c)
		go func() {
			_, err := r.backend.Acquire(ctx, wire.AcquireRequest{Key: key, Owner: "me", Lease: time.Minute})
			came <- err
		}()
		r.until(func() bool { return r.backend.acquires.Size(c) == size+1 })
	}
	ctx, leave := context.WithCancel(context.Background())
	join(ctx, "leaver")
	join(context.Background(), "b")
	r.send(c)
	<-made
	leave()
	err := <-came
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, wire.Unknown, wire.OutcomeOf(err))
	_, err = r.backend.Release(context.Background(), wire.ReleaseRequest{Key: "leaver", Owner: "me", Doubt: true})
	require.NoError(t, err)
	goOn <- true
	require.NoError(t, <-came)
	require.True(t, r.held("a") && r.held("b"))
	require.False(t, r.held("leaver"))
}
