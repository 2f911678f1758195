package quorum

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/hall"
	"github.com/holdfast-go/holdfast/scripts"
)

// What a failed round comes to on five nodes, each of which has said yes (y), that
// another holds the lock (h), nothing in time (s), that it has no vote (n, v) or no (r),
// or was away (a); or was not asked any more, as the round had been given up (o).
func TestFailedRoundIsJudged(t *testing.T) {
	said := map[rune]error{
		'y': nil, 'h': ErrHeld, 's': errSilent, 'a': errAway, 'o': errOver, 'n': noVote{time.Second}, 'v': errVoid,
		'r': refused(fmt.Errorf("a call: %w", &rueidis.RedisError{})),
	}
	for answers, want := range map[string]error{
		"hhhhh": hall.ErrNotAcquired,
		"hhhaa": hall.ErrNotAcquired,
		"yhhss": hall.ErrNotAcquired,
		"yyhaa": hall.ErrUnavailable, // most of those who answered had it for us
		"yyhha": hall.ErrUnavailable, // half of them
		"hhhrn": hall.ErrNotAcquired,
		"yhhrr": hall.ErrUnavailable, // two of five answers
		"yhhna": hall.ErrUnavailable, // two of four
		"yhhvs": hall.ErrUnavailable,
		"yhhas": hall.ErrNotAcquired,
		"hhaaa": hall.ErrUnavailable, // who has it there has no quorum either
		"hssaa": hall.ErrUnavailable, // nobody can have said yes often enough
		"yyaaa": hall.ErrUnavailable,
		"yssaa": hall.ErrUnknown,
		"ssssh": hall.ErrUnknown,
		"yyyhh": hall.ErrUnknown, // the fence is missing
		"rrryy": errNotNamed,
		"ooooo": hall.ErrUnavailable, // it is tried again
		"hhhoo": hall.ErrNotAcquired,
	} {
		q := &Quorum{need: 3}
		r := &round{q: q, said: make([]scripts.Ballot, 5)}
		for _, c := range answers {
			q.nodes = append(q.nodes, &node{})
			r.errs = append(r.errs, said[c])
		}
		got, err := r.failed()
		require.False(t, got.OK)
		if err == nil { // others have it, or are after it as well
			require.ErrorIs(t, got.Why, want, answers)
			continue
		}
		outcome := map[scripts.Outcome]error{
			scripts.Unavailable: hall.ErrUnavailable, scripts.Unknown: hall.ErrUnknown, scripts.Refused: errNotNamed,
		}
		require.Equal(t, want, outcome[scripts.OutcomeOf(err)], answers)
		require.NotErrorIs(t, err, hall.ErrNotAcquired, answers)
	}
}

var errNotNamed = errors.New("an error that has no name of ours")
