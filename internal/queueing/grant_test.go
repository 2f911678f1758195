package queueing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// failing is a backend whose Redis answers no confirmation.
type failing struct {
	Backend
	confirms int
}

func (f *failing) Confirm(context.Context, wire.AcquireRequest, wire.Grant) (wire.AcquireReply, error) {
	f.confirms++
	return wire.AcquireReply{}, errors.New("connection reset")
}

// A confirmation that Close finds between two attempts makes no other.
func TestConfirmEndsWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := lingerers(t, 0)
		redis := &failing{Backend: q.backend}
		q.backend = redis
		w, ended := q.key.NewWaiter(engine.Terms{Lease: time.Minute}, nil, 0), make(chan error, 1)
		granted := q.newTicket(w)
		q.key.Lock()
		q.register(granted)
		q.key.Unlock()
		began := time.Now()
		go func() {
			_, err := granted.Confirm(t.Context(), w)
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, q.engine.Close())
		require.ErrorIs(t, <-ended, holdfast.ErrClosed)
		require.Equal(t, 1, redis.confirms)
		require.Zero(t, time.Since(began))
		require.Len(t, q.leaving, 1, "the grant is given up")
	})
}
