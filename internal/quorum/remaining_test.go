package quorum

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/scripts"
)

// A waiter sleeps until enough nodes can be free. It does not wait for nodes where the hold
// lasts longer, after a late repair or by a slow clock.
func TestG4_RemainingIsThatOfTheNodesNeeded(t *testing.T) {
	const never = scripts.NoExpiry
	free, pending, failed := time.Duration(-10), time.Duration(-11), time.Duration(-12)
	for name, c := range map[string]struct {
		need int
		said []time.Duration // what is left of another's hold on each node
		want time.Duration
	}{
		"all held":                    {3, []time.Duration{50, 10, 40, 20, 30}, 30},
		"some free":                   {3, []time.Duration{free, 10, 40, free, 30}, 10},
		"one that never ends":         {3, []time.Duration{never, 10, 40, free, free}, 10},
		"too many that never end":     {3, []time.Duration{never, 10, never, free, never}, never},
		"one that has not answered":   {3, []time.Duration{50, 10, 40, pending, 30}, 30},
		"two that have not":           {3, []time.Duration{50, pending, 40, pending, 30}, 30},
		"one that does not vote":      {3, []time.Duration{50, 10, 40, failed, 30}, 40},
		"as many as may be":           {2, []time.Duration{90, pending, 80}, 80},
		"more votes than of a quorum": {4, []time.Duration{50, 10, 40, 20, 30}, 40},
		"all votes":                   {5, []time.Duration{never, 10, 40, 20, 30}, never},
		"one node":                    {1, []time.Duration{7}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			r := &round{q: &Quorum{quorum: len(c.said)/2 + 1, need: c.need}}
			for _, left := range c.said {
				r.q.nodes = append(r.q.nodes, &node{})
				b, err := scripts.NodeReply{}, ErrHeld
				switch left {
				case free:
					b.OK, err = true, nil
					r.yes++
				case pending:
					err = errPending
					r.pending++
				case failed:
					err = errors.New("away")
				default:
					b.Holder, b.Remaining = ownO, left
					r.held++
				}
				r.said, r.errs = append(r.said, b), append(r.errs, err)
			}
			a, err := r.failed()
			require.NoError(t, err)
			require.Equal(t, c.want, a.Remaining)
		})
	}
}

// The label of a holder stands in the error of a round, also where too few nodes have answered.
func TestErrorOfARoundNamesHolders(t *testing.T) {
	r := &round{q: &Quorum{quorum: 2, need: 2, nodes: []*node{{}, {}, {}}}, held: 1}
	r.errs = []error{ErrHeld, errSilent, errAway}
	r.said = []scripts.NodeReply{{Acquired: scripts.Acquired{Remaining: time.Second, Why: errs.HeldBy("a")}, Holder: ownO}, {}, {}}
	_, err := r.failed()
	require.ErrorContains(t, err, `held by "a"`)
	require.ErrorIs(t, err.(*Error).Nodes[0].Err, ErrHeld)
	require.Equal(t, scripts.Unavailable, scripts.OutcomeOf(err))
}
