package quorum

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// maxSkew is how far the clocks of a quorum that makes a fence number may differ: half the
// longest lease. As one of them is true, a number is at most that far ahead of a true clock,
// or an eighth more if numbers were reserved and lost. As true clocks differ by a third of the
// longest lease at most, it is less than the longest lease ahead of each. A node that has lost
// its counter votes again after a longest lease, and by then the true clocks have passed the
// number; one of them is in its round.
func (q *Quorum) maxSkew() int64 { return q.MaxLease.Microseconds() / 2 }

// clocks appends the clocks of the yes nodes to room, in ascending order. Under mu.
func (r *round) clocks(room []int64) []int64 {
	for i, reply := range r.replies {
		if r.errs[i] == nil {
			room = append(room, reply.Clock)
		}
	}
	slices.Sort(room)
	return room
}

// clock is the latest time on which the clocks of a quorum of yes nodes agree, or 0. Under
// mu.
func (r *round) clock() int64 {
	var room [MaxNodes]int64
	clocks := r.clocks(room[:0])
	for i := len(clocks) - 1; i >= r.q.quorum-1; i-- {
		if clocks[i]-clocks[i-r.q.quorum+1] <= r.q.maxSkew() {
			return clocks[i]
		}
	}
	return 0
}

// mint makes the fence numbers of a hold: larger than those that a node of the quorum knows
// of, and than the time, so that they go on growing when counters are lost. Only a time on
// which a quorum agrees makes a number, so no other is ever written to a counter. agreed is
// false if there is none; then errs names the nodes with wrong clocks. Under mu.
func (r *round) mint() (first, last int64, agreed bool) {
	clock := r.clock()
	if clock == 0 {
		r.disagree()
		return 0, 0, false
	}
	first = clock
	for i, n := range r.q.nodes {
		if r.errs[i] == nil {
			first = max(first, r.replies[i].Counter+1)
			n.compare(time.Duration(r.replies[i].Clock-clock) * time.Microsecond)
		}
	}
	return first, max(first, clock+r.hold.Fencing.Reserve-1), true
}

// disagree blames the nodes with clocks far from the middle one. Under mu.
func (r *round) disagree() {
	clocks := r.clocks(nil)
	middle := clocks[(len(clocks)-1)/2]
	for i, n := range r.q.nodes {
		d := r.replies[i].Clock - middle
		if r.errs[i] == nil && max(d, -d) > r.q.maxSkew()/2 { // otherwise a quorum would agree
			by := time.Duration(d) * time.Microsecond
			r.errs[i] = ownError{fmt.Errorf("no vote with fencing: its clock differs from the other nodes' by %v", by), wire.Unavailable}
			n.compare(by)
		}
	}
}

// compare notes how far a node's clock is ahead of the others', and logs when that becomes
// too much.
func (n *node) compare(by time.Duration) {
	skewed := max(by, -by).Microseconds() > n.q.maxSkew()
	if n.skewed.Load() != skewed && n.skewed.CompareAndSwap(!skewed, skewed) && skewed {
		n.q.Logger.Warn("holdfast: multilock: a node's clock differs from the other nodes'; it is not used for fence numbers",
			"node", n.name, "ahead by", by)
	}
}

// writeBack raises the fence counters of the nodes that have a hold to its last number,
// before Lock returns: the next holder of the key meets a node of this quorum, and so gets
// larger numbers. It reports whether a quorum has done so. The refusal of a node takes
// the place of its yes.
func (r *round) writeBack(ctx context.Context, last int64) bool {
	q, h, targets := r.q, r.hold, []*node(nil)
	h.mu.Lock()
	h.fence = last
	for i, n := range q.nodes {
		if h.parts[i].state == present {
			if !h.over {
				h.parts[i].state = minted
			}
			targets = append(targets, n)
		}
	}
	h.mu.Unlock()
	done := 0
	for a := range each(ctx, &q.short, targets, func(n *node) (struct{}, error) { return struct{}{}, n.raise(h) }) {
		switch {
		case a.err == nil:
			done++
		case a.err != errOver && wire.OutcomeOf(a.err).Final():
			r.mu.Lock()
			r.errs[a.n.index] = a.err
			r.mu.Unlock()
		}
		if done >= q.need {
			return true
		}
	}
	return false
}

// raise writes a hold's last fence number, if it has one yet, back to one node. A node that
// gets the hold later gets the number as well, so that it outlives the loss of counters on a
// minority.
func (n *node) raise(h *hold) error {
	h.mu.Lock()
	last := h.fence
	h.mu.Unlock()
	if last == 0 {
		return nil
	}
	ours, err := call(n, h.Lease, func(ctx context.Context) (bool, error) {
		return n.redis.WriteFence(ctx, h.Key, h.Owner, last, *n.q.FenceExpiry)
	})
	if err == nil && !ours {
		return errOver
	}
	return err
}
