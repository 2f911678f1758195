package quorum

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/pubsub"
)

// node is one Redis of the quorum: its calls, its vote, and the jobs of its repairer.
type node struct {
	q          *Quorum // immutable
	index      int     // immutable
	name       string  // address without credentials; immutable
	redis      *wire.Redis
	subscriber *pubsub.Subscriber
	guard      guard

	lastAnswer atomic.Int64 // when the node last answered, in ns; 0: a call has failed since
	extended   atomic.Int64 // when the last call that may make or prolong holds was sent, in ns
	silent     atomic.Int32 // calls in a row without an answer, 0 while lastAnswer is not; written under mu
	skewed     atomic.Bool  // its clock differed from the others' when last seen

	mu        sync.Mutex
	why       error           // of the last call without an answer; guarded by mu
	jobs      map[string]*job // of the repairer, by owner; guarded by mu
	doing     []*job          // those that it does now; guarded by mu
	repairing bool            // a repairer is at work; guarded by mu
	newEnd    chan struct{}   // one slot: there is a new job that ends a hold; immutable
	progress  chan struct{}   // one slot: the repairer has done what it could; immutable

	asks batcher[bool, wire.NodeReply] // with fencing or without
	ends batcher[struct{}, endReply]
}

func newNode(q *Quorum, index int, client rueidis.Client) *node {
	n := &node{
		q: q, index: index, redis: wire.NewRedis(client, wire.RedisSettings{Label: q.Label, Logger: q.Logger}),
		subscriber: pubsub.New(client, q.Logger),
		jobs:       make(map[string]*job), newEnd: make(chan struct{}, 1), progress: make(chan struct{}, 1),
	}
	n.asks.n, n.asks.call, n.asks.note = n, n.acquire, n.noteAsk
	n.ends.n, n.ends.call, n.ends.note = n, n.release, n.noteEnd
	for addr := range client.Nodes() {
		n.name = addr
	}
	return n
}

// awayAfter is how many calls in a row without an answer make a node count as away. Then no
// caller waits for it; only its repairer asks whether it is back.
const awayAfter = 3

// away reports whether the node is known not to answer.
func (n *node) away() bool { return n.silent.Load() >= awayAfter }

// absence is the error of a call that is not made because the node is away.
func (n *node) absence() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return ownError{fmt.Errorf("does not answer: %w", n.why), wire.Unavailable}
}

// fresh reports whether the node has just answered.
func (n *node) fresh() bool {
	last := n.lastAnswer.Load()
	return last != 0 && n.q.calls.Now()-time.Duration(last) < calls.Fresh
}

// extends notes that a call which may make or prolong holds is about to be sent.
func (n *node) extends() { n.extended.Store(int64(n.q.calls.Now())) }

// noteCall notes how a call ended. While the node answers, it takes no mutex, as every call
// passes through here.
func (n *node) noteCall(err error) {
	if err != nil && errors.As(err, new(ownError)) {
		return // an error of our own
	}
	outcome := wire.OutcomeOf(err)
	silent := (outcome == wire.Unknown || outcome == wire.Unavailable) && !wire.Replied(err)
	now, last := int64(n.q.calls.Now()), n.lastAnswer.Load()
	if !silent && last != 0 {
		n.lastAnswer.CompareAndSwap(last, now) // otherwise another call has stored a time as new
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !silent {
		n.silent.Store(0)
		n.lastAnswer.Store(now)
		return
	}
	n.lastAnswer.Store(0)
	n.why = err
	if n.silent.Add(1) >= awayAfter {
		n.ensureRepairer()
	}
}

// back notes that the node is not away, or no longer. Whether it answers its next call is not known.
func (n *node) back() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent.Store(0)
}

// call makes one call to a node, about a hold with this lease; 0: any lease. It returns when the
// context of f ends, even while rueidis waits for a dial; but not if the node has just answered, when a
// dial is unlikely.
func call[T any](n *node, lease time.Duration, f func(context.Context) (T, error)) (T, error) {
	return callFor(1, n, lease, f)
}

// callFor is call for the members of a batch. With several, it always uses a goroutine, so
// that they do not all wait for a dial.
func callFor[T any](members int, n *node, lease time.Duration, f func(context.Context) (T, error)) (value T, err error) {
	ctx := n.q.bounded(lease)
	if members == 1 && n.fresh() {
		value, err = f(ctx)
	} else {
		value, err = detach(ctx, n, f)
	}
	if err != nil && ctx.Err() != nil {
		err = calls.ErrNoAnswer
		if n.q.hurries(lease) {
			return value, err // which does not mean that the node is away
		}
	}
	n.noteCall(err)
	return value, err
}

// detach runs f in the background, and returns when f or ctx ends.
func detach[T any](ctx context.Context, n *node, f func(context.Context) (T, error)) (T, error) {
	return calls.Detach(ctx, n.q.work.TryGo, errClosed, f)
}

// bounded is the context of a call to a node about a hold with this lease.
func (q *Quorum) bounded(lease time.Duration) context.Context {
	if q.hurries(lease) {
		return calls.After(q.bounds.Base, lease/10)
	}
	return q.bounds.Context()
}

// hurries reports whether calls about a hold with this lease have a shorter timeout, and so join no
// batch.
func (q *Quorum) hurries(lease time.Duration) bool { return lease > 0 && lease/10 < q.NodeTimeout }
