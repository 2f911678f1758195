package quorum

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/calls"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// The random delay before the next round doubles with each failed round, up to a bound that
// slow nodes raise. It may always be short.
func TestRetryDelay_Bounds(t *testing.T) {
	const longest, ms = 30 * time.Second, time.Millisecond
	for _, c := range []struct {
		rtt   time.Duration
		tries int
		most  time.Duration
	}{
		{0, 0, ms / 10},
		{0, 20, ms / 10},
		{ms, 0, ms},
		{ms, 3, 8 * ms},
		{ms, 50, 250 * ms},
		{100 * ms, 50, 1600 * ms},
		{time.Second, 50, longest / 10},
	} {
		q := &Quorum{Config: Config{MaxLease: longest}}
		q.rtt.Store(int64(c.rtt))
		least, most := time.Hour, time.Duration(0)
		for range 20_000 {
			d := q.RetryDelay(c.tries)
			least, most = min(least, d), max(most, d)
		}
		require.Less(t, most, c.most, "%+v", c)
		require.Greater(t, most, c.most/2, "%+v", c)
		require.Less(t, least, c.most/100, "%+v", c)
		require.GreaterOrEqual(t, least, time.Duration(0))
	}
}

// The judgement of a failed round on five nodes. Each node has said yes (y), held by
// another (h), nothing in time (s), no vote (n, v), a refusal (r) or words of a proxy (p), was
// away (a), or was not asked, as the round had been given up (o).
func TestFailedRoundIsJudged(t *testing.T) {
	byLetter := map[rune]error{
		'y': nil, 'h': holdfast.ErrHeld, 's': calls.ErrNoAnswer, 'a': errAway, 'o': errOver, 'v': errVoid,
		'n': ownError{noVote{time.Second}, wire.Unavailable},
		'r': refused(fmt.Errorf("a call: %w", &rueidis.RedisError{})),
		'p': ownError{errors.New("upstream failure"), wire.Doubtful},
	}
	for answers, want := range map[string]error{
		"hhhhh": holdfast.ErrNotAcquired,
		"hhhaa": holdfast.ErrNotAcquired,
		"yhhss": holdfast.ErrNotAcquired,
		"yyhaa": holdfast.ErrUnavailable, // most of the nodes that answered had it for us
		"yyhha": holdfast.ErrUnavailable, // half of them
		"hhhrn": holdfast.ErrNotAcquired,
		"yhhrr": holdfast.ErrUnavailable, // two of five answers
		"yhhna": holdfast.ErrUnavailable, // two of four
		"yhhvs": holdfast.ErrUnavailable,
		"yhhas": holdfast.ErrNotAcquired,
		"hhaaa": holdfast.ErrUnavailable, // its holder there has no quorum either
		"hssaa": holdfast.ErrUnavailable, // a quorum cannot have said yes
		"yyaaa": holdfast.ErrUnavailable,
		"yssaa": holdfast.ErrUnknown,
		"ssssh": holdfast.ErrUnknown,
		"yyyhh": holdfast.ErrUnknown, // the fence is missing
		"rrryy": errNotNamed,
		"pppyy": errDoubtful,
		"rrpyy": errDoubtful,
		"yypaa": holdfast.ErrUnknown, // a quorum may have it
		"yppaa": holdfast.ErrUnknown,
		"pphaa": holdfast.ErrUnavailable,
		"ooooo": holdfast.ErrUnavailable, // another round follows
		"hhhoo": holdfast.ErrNotAcquired,
	} {
		q := &Quorum{need: 3}
		r := &round{q: q, replies: make([]wire.NodeReply, 5)}
		for _, c := range answers {
			q.nodes = append(q.nodes, &node{})
			r.errs = append(r.errs, byLetter[c])
		}
		got, err := r.failed()
		require.False(t, got.OK)
		if err == nil { // others have it, or want it as well
			require.ErrorIs(t, got.Why, want, answers)
			continue
		}
		outcome := map[wire.Outcome]error{
			wire.Unavailable: holdfast.ErrUnavailable, wire.Unknown: holdfast.ErrUnknown,
			wire.Refused: errNotNamed, wire.Doubtful: errDoubtful,
		}
		require.Equal(t, want, outcome[wire.OutcomeOf(err)], answers)
		require.NotErrorIs(t, err, holdfast.ErrNotAcquired, answers)
	}
}

var (
	errNotNamed = errors.New("an error that has no name of ours")
	errDoubtful = errors.New("such an error of a call that may have been carried out")
)

// noKey is the answer of a node whose user may not touch the key.
type noKey struct{ ownError }

func (noKey) KeyRefused() bool { return true }

// The user may not touch the key on some of five nodes (k), and others refuse for good (r): only
// where the first make the difference may the call succeed when they allow it.
func TestRefusedKeyMakesTheDifference(t *testing.T) {
	r := ownError{errors.New("refused"), wire.Refused}
	byLetter := map[rune]error{'y': nil, 'k': noKey{r}, 'r': r, 's': calls.ErrNoAnswer}
	for answers, want := range map[string]bool{
		"kkkkk": true, "kkkyy": true, "rrkyy": true, "rkkss": true,
		"rrryk": false, "rrrkk": false, "kkyyy": false, "kksss": false,
	} {
		q := &Quorum{}
		var errs []error
		for _, c := range answers {
			q.nodes, errs = append(q.nodes, &node{}), append(errs, byLetter[c])
		}
		err := q.newError(3, errs)
		require.Equal(t, want, wire.KeyRefused(err), answers)
		require.Equal(t, want, wire.OutcomeOf(err) == wire.Refused && wire.OutcomeOf(wire.AsLapsed(err)) == wire.Unavailable, answers)
	}
}

// A waiter sleeps until enough nodes can be free. It does not wait for nodes where the hold
// lasts longer, after a late repair or by a slow clock.
func TestG4_RemainingIsThatOfTheNodesNeeded(t *testing.T) {
	const never = wire.NoExpiry
	free, pending, failed := time.Duration(-10), time.Duration(-11), time.Duration(-12)
	for name, c := range map[string]struct {
		need int
		left []time.Duration // what is left of another's hold on each node
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
			r := &round{q: &Quorum{quorum: len(c.left)/2 + 1, need: c.need}}
			for _, left := range c.left {
				r.q.nodes = append(r.q.nodes, &node{})
				b, err := wire.NodeReply{}, holdfast.ErrHeld
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
				r.replies, r.errs = append(r.replies, b), append(r.errs, err)
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
	r.errs = []error{holdfast.ErrHeld, calls.ErrNoAnswer, errAway}
	r.replies = []wire.NodeReply{{AcquireReply: wire.AcquireReply{Remaining: time.Second, Why: errs.HeldBy("a")}, Holder: ownO}, {}, {}}
	_, err := r.failed()
	require.ErrorContains(t, err, `held by "a"`)
	require.ErrorIs(t, err.(*Error).Nodes[0].Err, holdfast.ErrHeld)
	require.Equal(t, wire.Unavailable, wire.OutcomeOf(err))
}
