package engine

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/pubsub"
)

// The place of a later waiter says nothing of the oldest, if one between them has given up.
func TestHeartbeatsAskForThePlaceOfTheOldest(t *testing.T) {
	inboxes := pubsub.New(redistest.Start(t).Client(t), slog.New(slog.DiscardHandler))
	defer inboxes.Close()
	q := lingerers(0)
	q.inbox, q.verify = inboxes.Subscribe("k"), true
	for i := range mostOwners + 9 {
		w, owner := newWaiter(Terms{}), fmt.Sprint(i)
		w.ticket = &ticket{queue: q, w: w, owner: owner, entered: true}
		q.tickets[owner] = w.ticket
		w.places = make(chan int, 1)
		q.key.push(w)
	}
	asked := q.ask()
	require.Len(t, asked, 2)
	require.Equal(t, "0", asked[0].Owners[0])
	require.True(t, asked[0].Place)
	require.Len(t, asked[1].Owners, 9)
	require.False(t, asked[1].Place)
}
