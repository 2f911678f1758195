package quorum

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/scripts"
)

// The judgement of a failed round on five nodes. Each node has said yes (y), held by
// another (h), nothing in time (s), no vote (n, v), a refusal (r) or words of a proxy (p), was
// away (a), or was not asked, as the round had been given up (o).
func TestFailedRoundIsJudged(t *testing.T) {
	said := map[rune]error{
		'y': nil, 'h': ErrHeld, 's': errSilent, 'a': errAway, 'o': errOver, 'n': noVote{time.Second}, 'v': errVoid,
		'r': refused(fmt.Errorf("a call: %w", &rueidis.RedisError{})),
		'p': judged{errors.New("upstream failure"), scripts.Doubtful},
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
		r := &round{q: q, said: make([]scripts.NodeReply, 5)}
		for _, c := range answers {
			q.nodes = append(q.nodes, &node{})
			r.errs = append(r.errs, said[c])
		}
		got, err := r.failed()
		require.False(t, got.OK)
		if err == nil { // others have it, or want it as well
			require.ErrorIs(t, got.Why, want, answers)
			continue
		}
		outcome := map[scripts.Outcome]error{
			scripts.Unavailable: holdfast.ErrUnavailable, scripts.Unknown: holdfast.ErrUnknown,
			scripts.Refused: errNotNamed, scripts.Doubtful: errDoubtful,
		}
		require.Equal(t, want, outcome[scripts.OutcomeOf(err)], answers)
		require.NotErrorIs(t, err, holdfast.ErrNotAcquired, answers)
	}
}

var (
	errNotNamed = errors.New("an error that has no name of ours")
	errDoubtful = errors.New("such an error of a call that may have been carried out")
)

// noKey is the answer of a node whose user may not touch the key.
type noKey struct{ judged }

func (noKey) KeyRefused() bool { return true }

// The user may not touch the key on some of five nodes (k), and others refuse for good (r): only
// where the first make the difference may the call succeed when they allow it.
func TestRefusedKeyMakesTheDifference(t *testing.T) {
	r := judged{errors.New("refused"), scripts.Refused}
	said := map[rune]error{'y': nil, 'k': noKey{r}, 'r': r, 's': errSilent}
	for answers, want := range map[string]bool{
		"kkkkk": true, "kkkyy": true, "rrkyy": true, "rkkss": true,
		"rrryk": false, "rrrkk": false, "kkyyy": false, "kksss": false,
	} {
		q := &Quorum{}
		var errs []error
		for _, c := range answers {
			q.nodes, errs = append(q.nodes, &node{}), append(errs, said[c])
		}
		err := q.newError(3, errs)
		require.Equal(t, want, scripts.KeyRefused(err), answers)
		require.Equal(t, want, scripts.OutcomeOf(err) == scripts.Refused && scripts.OutcomeOf(scripts.Lapse(err)) == scripts.Unavailable, answers)
	}
}
