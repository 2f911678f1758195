package quorum

import (
	"context"
	"runtime"

	"github.com/holdfast-go/holdfast/internal/batch"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// batcher makes calls of one verb to a node. Calls that are about to be made at the same time
// go out as a batch, with one goroutine that waits for the reply. K is common to the holds of
// a batch, R is the answer for each. Safe for concurrent use.
//
//	node.ask     asks.add  send  call: node.acquire  deliver  note: node.noteAsk
//	node.endNow  ends.add  send  call: node.release  deliver  note: node.noteEnd
type batcher[K comparable, R any] struct {
	batch.Batcher[K, item[R], struct{}]
	n    *node                                                                       // immutable
	call func(ctx context.Context, kind K, items []item[R]) (replies []R, err error) // immutable
	note func(h *hold, reply R, err error) error                                     // notes an answer in its hold; immutable
}

// item is a hold in a batch, with the function that gets the node's answer.
type item[R any] struct {
	hold *hold
	done func(n *node, reply R, err error)
}

// ending is an item of a batch that ends holds on a node.
type ending = item[endReply]

// endReply is the answer to one.
type endReply = wire.Result[wire.ReleaseReply]

// add makes the call for a hold, alone or in a batch, and returns immediately.
func (b *batcher[K, R]) add(kind K, i item[R], alone bool) {
	c, index := b.Join(kind, i, alone)
	if index == 0 && !b.n.q.work.TryGo(func() {
		runtime.Gosched()
		b.send(c)
	}) {
		b.Seal(c)
		b.deliver(c.Asks, nil, errClosed)
	}
}

// send closes a batch and makes its call.
func (b *batcher[K, R]) send(c *batch.Call[K, item[R], struct{}]) {
	b.Seal(c)
	replies, err := callFor(len(c.Asks), b.n, c.Asks[0].hold.Lease, func(ctx context.Context) ([]R, error) {
		return b.call(ctx, c.Kind, c.Asks)
	})
	if len(c.Asks) > 1 && wire.Replied(err) && wire.OutcomeOf(err) == wire.Refused {
		for _, a := range c.Asks { // perhaps the fault of one member, such as a forbidden key
			b.add(c.Kind, a, true)
		}
		return
	}
	b.deliver(c.Asks, replies, err)
}

func (b *batcher[K, R]) deliver(items []item[R], replies []R, err error) {
	for i, a := range items {
		var one R
		if err == nil {
			one = replies[i]
		}
		a.done(b.n, one, b.note(a.hold, one, err))
	}
}
