package quorum

import (
	"context"

	"github.com/holdfast-go/holdfast/scripts"
)

// writeBack raises the fence counters of the nodes that have a hold to the largest
// number that one of them has reserved, before any is handed out: whoever holds
// the key next meets a node of this quorum, and so gets larger ones. It says
// whether a quorum has done so, and tells of each node that refuses.
func (q *Quorum) writeBack(ctx context.Context, h *hold, last int64, refused func(*node, error)) bool {
	var targets []*node
	h.mu.Lock()
	h.last = last
	for i, n := range q.nodes {
		if h.parts[i].there {
			targets = append(targets, n)
		}
	}
	h.mu.Unlock()
	came := q.each(targets, func(n *node) error { return n.raise(h) })
	done := 0
	for range targets {
		select {
		case a := <-came:
			switch {
			case a.err == nil:
				done++
			case a.err != errOver && scripts.OutcomeOf(a.err) == scripts.Refused:
				refused(a.n, a.err)
			}
		case <-ctx.Done():
			return false
		}
		if done >= q.need {
			return true
		}
	}
	return false
}

// raise writes a hold's last fence number back to one node, if there is one yet. A
// node that comes to have the hold later gets it, too, so that the number outlives
// the loss of counters on a minority.
func (n *node) raise(h *hold) error {
	h.mu.Lock()
	last := h.last
	h.mu.Unlock()
	if last == 0 {
		return nil
	}
	ours, err := call(n.q.bounded(h.lease), n, func(ctx context.Context) (bool, error) {
		return n.script.WriteFence(ctx, h.key, h.owner, last, n.q.FenceExpiry)
	})
	if err == nil && !ours {
		return errOver
	}
	return err
}
