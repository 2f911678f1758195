package quorum

import (
	"context"
	"slices"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Scans returns one Scan, which reads a page of each node at the same time. It fails once fewer
// than a quorum of nodes have answered every time: a key that a quorum holds is on one of those.
func (q *Quorum) Scans(_ context.Context, match string) ([]wire.Scan, error) {
	cursors, failures := make([]uint64, len(q.nodes)), make([]error, len(q.nodes))
	return []wire.Scan{{Page: func(_ context.Context, at uint64) (whole wire.Page, err error) {
		// It waits for all nodes, as each reads one page at a time.
		pages, err := all(context.Background(), q, q.quorum, func(n *node) (page wire.Page, err error) {
			cursor := cursors[n.index]  // the call may outlast this round
			if at != 0 && cursor == 0 { // it has read all, or failed
				return page, failures[n.index]
			}
			page, err = call(n, 0, func(ctx context.Context) (wire.Page, error) {
				scans, err := n.redis.Scans(ctx, match)
				if err != nil {
					return wire.Page{}, err
				}
				return scans[0].Page(ctx, cursor)
			})
			cursors[n.index], failures[n.index] = page.Next, err
			return page, err
		})
		for _, page := range pages {
			whole.Names = append(whole.Names, page.Names...)
			whole.Next |= page.Next
		}
		slices.Sort(whole.Names)
		whole.Names = slices.Compact(whole.Names)
		return whole, err
	}}}, nil
}

// InspectEach returns what Inspect does, for each of names. It costs one round trip to each node.
func (q *Quorum) InspectEach(ctx context.Context, names []string) ([]wire.Result[holdfast.Status], error) {
	replies, err := all(ctx, q, q.quorum, func(n *node) ([]wire.Result[holdfast.Status], error) {
		return call(n, 0, func(ctx context.Context) ([]wire.Result[holdfast.Status], error) {
			return n.redis.InspectEach(ctx, names)
		})
	})
	if err != nil {
		return nil, err
	}
	results := make([]wire.Result[holdfast.Status], len(names))
	for i := range names {
		states, errs, good := make([]holdfast.Status, len(replies)), make([]error, len(replies)), 0
		for n, of := range replies {
			errs[n] = errAway
			if of != nil {
				states[n], errs[n] = of[i].Value, of[i].Err
			}
			if errs[n] == nil {
				good++
			}
		}
		if results[i].Value = q.agreed(states); good < q.quorum {
			results[i].Err = q.newError(q.quorum, errs)
		}
	}
	return results, nil
}
