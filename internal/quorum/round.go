package quorum

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/loop"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// round is one try at a quorum, with an owner of its own.
type round struct {
	q    *Quorum
	hold *hold

	mu       sync.Mutex
	replies  []wire.NodeReply // by node; of those that answered
	errs     []error          // by node; errPending until it has answered
	yes      int
	held     int // nodes that said that another has it
	pending  int
	decided  chan struct{} // closed when enough have said yes, or can no longer do so and it is known why
	complete bool          // decided is closed
}

// Acquire makes one round: it asks all nodes in parallel. It returns when enough have said yes,
// or when they can no longer do so and it is known whether others have the lock. If the votes
// are split and this round has most of them, it first asks the others again, a few times. It
// then asks missing nodes again in the background, or ends a failed round on all nodes. It asks
// none if ctx has ended.
func (q *Quorum) Acquire(ctx context.Context, a wire.AcquireRequest) (wire.AcquireReply, error) {
	q.checkNodes(ctx)
	a.Fencing.Reserve = max(1, min(a.Fencing.Reserve, q.MaxLease.Microseconds()/8)) // see maxSkew
	h := q.newHold(a)
	r := &round{q: q, hold: h, replies: make([]wire.NodeReply, len(q.nodes)), errs: make([]error, len(q.nodes))}
	q.holds.Store(a.Owner, h) // so that a caller that leaves during the round can give it up by the owner
	if err := ctx.Err(); err != nil {
		q.holds.Delete(a.Owner) // the caller may have left before that
		return wire.AcquireReply{}, ownError{err, wire.Refused}
	}
	start := time.Now()
	r.ask(ctx, q.nodes)
	q.rtt.NoteRTT(time.Since(start))
	for range reAsks {
		others := r.winsSplit()
		pause := time.Duration(q.rtt.Load()) / 2 // for the other rounds to give up
		if len(others) == 0 || !loop.Sleep(pause, ctx.Done()) || time.Since(start) >= q.NodeTimeout {
			break // late, the clocks of the first yeses would be compared with those of others
		}
		r.ask(ctx, others)
	}
	if reply := r.conclude(ctx); reply.OK {
		return reply, nil
	}
	q.giveUp(h, false)
	return r.failed()
}

// ask asks nodes, and waits until the round is decided or ctx has ended.
func (r *round) ask(ctx context.Context, nodes []*node) {
	r.mu.Lock()
	for _, n := range nodes {
		if r.errs[n.index] == holdfast.ErrHeld {
			r.held--
		}
		r.errs[n.index] = errPending
	}
	r.pending += len(nodes)
	if !r.enough() { // otherwise a late answer was a yes
		r.complete, r.decided = false, make(chan struct{})
	}
	r.mu.Unlock()
	onReply := r.onReply // one for all nodes: each would be allocated
	for _, n := range nodes {
		n.ask(r.hold, r.q.Fencing, onReply)
	}
	select {
	case <-r.decided:
	case <-ctx.Done():
	}
}

// reAsks is how often a round asks nodes again that others have: by then, these have given up.
const reAsks = 3

// winsSplit decides a split vote. Of the rounds that have votes, the one with most of them goes on,
// and the others give theirs up. If this round goes on, winsSplit returns the nodes that others
// have, to be asked again. It returns none if the round has won, is not the first, or lacks
// votes for another reason. Owners with equally many votes come in the order of their hashes, so
// that no locker is always ahead. All see the same votes in the end, so only one goes on. Several
// may do so for a moment: none of them has a quorum, as each node has one owner.
func (r *round) winsSplit() (others []*node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.complete || r.yes == 0 || r.yes >= r.q.need || r.yes+r.held < r.q.need {
		return nil
	}
	votes := map[string]int{}
	for i, n := range r.q.nodes {
		if r.errs[i] == holdfast.ErrHeld {
			votes[r.replies[i].Holder]++
			others = append(others, n)
		}
	}
	mine := rank(r.hold.Owner)
	for owner, n := range votes {
		if n > r.yes || n == r.yes && rank(owner) > mine {
			return nil
		}
	}
	return others
}

// rank orders owners, the same way everywhere.
func rank(owner string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(owner))
	return sum.Sum64()
}

// enough reports whether enough nodes have said yes, under mu.
func (r *round) enough() bool { return r.yes >= r.q.need && (!r.q.Fencing || r.clock() > 0) }

// onReply notes the answer of a node. A node that the round was won without is asked again.
func (r *round) onReply(n *node, reply wire.NodeReply, err error) {
	if err == nil && reply.Gone {
		err = errOver
	}
	r.mu.Lock()
	late := r.complete
	r.replies[n.index], r.errs[n.index] = reply, err
	switch {
	case err == nil && reply.OK:
		if other := r.q.sameServerAs(n, reply.RunID, r.runIDOf); other != nil {
			r.errs[n.index] = sameServer(other, n)
			r.hold.lacks(n) // so that writeBack does not count it
		} else {
			r.yes++
		}
	case err == nil:
		r.held++
		r.errs[n.index] = holdfast.ErrHeld
	}
	r.pending--
	missing := r.errs[n.index] != nil
	won := r.enough()
	// The error must tell "held by others" from "too few nodes": the round waits for the answers that decide.
	telling := r.yes+r.held < r.q.need && r.yes+r.held+r.pending >= r.q.need
	if !r.complete && (won || r.pending == 0 || r.yes+r.pending < r.q.need && !telling) {
		r.complete = true
		close(r.decided)
	}
	r.mu.Unlock()
	switch {
	case missing:
		n.repair(r.hold) // if a quorum has it without this node
	case late && reply.OK && r.q.Fencing: // the quorum has the number without this node
		r.q.work.TryGo(func() { _ = n.raise(r.hold) })
	}
}

// runIDOf is the run id of a node that has said yes, otherwise "".
func (r *round) runIDOf(n *node) string {
	if reply := &r.replies[n.index]; reply.OK {
		return reply.RunID
	}
	return ""
}

// conclude ends a round. Its reply is OK if enough nodes have said yes, a quorum has the fence number, and
// the owner has not been given up.
func (r *round) conclude(ctx context.Context) (reply wire.AcquireReply) {
	r.mu.Lock()
	yes := r.yes >= r.q.need
	if yes && r.q.Fencing {
		reply.Fence, reply.FenceEnd, yes = r.mint()
	}
	r.mu.Unlock()
	if !yes || r.q.Fencing && !r.writeBack(ctx, reply.FenceEnd) {
		return reply
	}
	h := r.hold
	h.mu.Lock()
	h.won = !h.over
	reply.OK = h.won
	h.mu.Unlock()
	if !reply.OK { // already cleaned up, as the caller has left
		return reply
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, n := range r.q.nodes {
		if err := r.errs[i]; err != nil && err != errPending {
			n.repair(h)
		}
	}
	return reply
}

// failed says why the round has failed: others have the lock, or want it as well, or too few
// nodes voted.
func (r *round) failed() (wire.AcquireReply, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answers := slices.Clone(r.errs)
	for i, err := range answers {
		if err == errOver {
			answers[i] = errGivenUp
		}
	}
	e := r.q.newError(r.q.need, answers)
	votes, left, split := map[string]int{}, []time.Duration(nil), true
	for i, reply := range r.replies {
		if r.errs[i] != holdfast.ErrHeld {
			continue
		}
		if by := errs.HeldBy(""); errors.As(reply.Why, &by) && by != "" {
			e.Nodes[i].Err = wire.Matching(errors.New("held by "+errs.Quote(string(by))), holdfast.ErrHeld)
		}
		votes[reply.Holder]++
		split = split && votes[reply.Holder] < r.q.need
		if reply.Remaining == wire.NoExpiry {
			reply.Remaining = math.MaxInt64
		}
		left = append(left, reply.Remaining)
	}
	if !e.contended {
		return wire.AcquireReply{}, e
	}
	// Retry when enough nodes can be free: those that said yes, those that have not answered,
	// and the first of the others where the hold ends.
	slices.Sort(left)
	remaining := left[max(r.q.need-r.pending-e.yes, 1)-1]
	if remaining == math.MaxInt64 {
		remaining = wire.NoExpiry
	}
	holder := ""
	for owner, n := range votes {
		if n >= r.q.need || len(votes) == 1 {
			holder = owner
		}
	}
	return wire.AcquireReply{Remaining: remaining, Split: split, Holder: holder, Why: e}, nil
}

// RetryDelay is a random delay before the next round. It grows with the failed rounds, as on an
// Ethernet: lockers that ask at the same time split the votes, and none gets a quorum. See the
// Redlock page, "Retry on failure". All its sizes are equally likely, small ones included:
// otherwise a locker that has failed often would be asleep whenever the key is free, and the
// last holders would take it again.
func (q *Quorum) RetryDelay(tries int) time.Duration {
	rtt := time.Duration(q.rtt.Load())
	window := min(rtt<<rand.N(min(tries, 10)+1), max(250*time.Millisecond, min(16*rtt, q.MaxLease/10)))
	return rand.N(max(window, 100*time.Microsecond))
}
