package pubsub

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The steps of one channel, without a loop and a server: what is sent, and what an acknowledgement means.
func TestG4_AcknowledgementBelongsToTheLastCommand(t *testing.T) {
	s := New(nil, nil)
	n := newNode(s, "") // without a loop
	s.nodes[""] = n
	l := &link{hears: true}
	n.link = l
	sends := func(join, leave []string) {
		t.Helper()
		j, u := n.next(batch)
		j = slices.DeleteFunc(j, func(name string) bool { return strings.Contains(name, ownChannel) })
		require.Equal(t, join, j)
		require.Equal(t, leave, u)
	}
	ch := []string{"ch"}

	s.Subscribe("ch").Close()
	sends(nil, nil)

	first := s.Subscribe("ch")
	sends(ch, nil)
	first.Close()
	sends(nil, nil) // not before SUBSCRIBE is acknowledged
	second := s.Subscribe("ch")
	sends(nil, nil) // the SUBSCRIBE under way serves it
	require.False(t, second.State().Live)
	n.onSubscription(l, "subscribe", "ch")
	require.Equal(t, State{Epoch: 1, Live: true}, second.State())

	second.Close()
	sends(nil, ch)
	third := s.Subscribe("ch")
	require.False(t, third.State().Live)
	sends(nil, nil) // not before UNSUBSCRIBE is acknowledged
	n.onSubscription(l, "unsubscribe", "ch")
	require.False(t, third.State().Live)
	sends(ch, nil)

	n.detach()
	n.link = &link{hears: true}
	sends(ch, nil)
	n.onSubscription(l, "subscribe", "ch") // of the connection that was lost
	n.onMessage(l, "ch", "0")
	require.Equal(t, State{}, third.State())
	n.onSubscription(n.link, "subscribe", "ch")
	require.Equal(t, State{Epoch: 1, Live: true}, third.State())
}
