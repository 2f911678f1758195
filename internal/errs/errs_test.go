package errs_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// A release without an answer, or refused, says nothing of work that was done under a live lease.
func TestOfDo(t *testing.T) {
	mine, refused := errors.New("mine"), errors.New("NOPERM")
	lost := errs.Of("unlock", "k", errs.Lost(errors.New("why")))
	for _, err := range []error{nil, mine} {
		require.Equal(t, err, errs.OfDo(err))
		require.Equal(t, err, errs.OfDo(err, nil, holdfast.ErrUnknown, errs.With(holdfast.ErrUnavailable, refused), refused))
		for _, over := range []error{lost, holdfast.ErrReleased, holdfast.ErrClosed, holdfast.ErrWrongType} {
			joined := errs.OfDo(err, holdfast.ErrUnknown, over)
			require.ErrorIs(t, joined, over)
			require.NotErrorIs(t, joined, holdfast.ErrUnknown)
			require.Equal(t, err != nil, errors.Is(joined, mine))
		}
	}
}
