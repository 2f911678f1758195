package pubsub

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stepwise is a node without a loop and a server, so that a test takes its steps.
func stepwise() (*Subscriber, *node, *link) {
	s := New(nil, nil)
	n := newNode(s, "")
	s.nodes[""], n.link = n, &link{}
	return s, n, n.link
}

// question is what the connection of a node asks for.
func question(t *testing.T, n *node) string {
	t.Helper()
	name, err := n.ownToAsk(n.link)
	require.NoError(t, err)
	return name
}

// The steps of one channel: what is sent, and what an acknowledgement means.
func TestG4_AcknowledgementBelongsToTheLastCommand(t *testing.T) {
	s, n, l := stepwise()
	l.hears = true
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

// Of each connection, the own channel is in the first SUBSCRIBE, and in that again if it failed.
func TestF36_OwnChannelGoesWithTheFirst(t *testing.T) {
	s, n, _ := stepwise()
	for i := range batch + 1 {
		s.Subscribe(strconv.Itoa(i))
	}
	first := ""
	for range 2 {
		n.link = &link{}
		join, _ := n.next(batch)
		require.Contains(t, join[1], ownChannel)
		require.NotEqual(t, first, join[1], "the server may not know yet that the last connection is lost")
		first = join[1]
		n.setPhase(join, joining, absent)
		join, _ = n.next(batch)
		require.Equal(t, first, join[1])
		join, _ = n.next(batch)
		for _, name := range join {
			require.NotContains(t, name, ownChannel)
		}
		n.detach()
	}
}

// It stays while another is being subscribed, which nobody would vouch for else.
func TestF36_OwnChannelStays(t *testing.T) {
	s, n, _ := stepwise()
	first := s.Subscribe("a")
	join, _ := n.next(batch)
	n.setPhase(join, joining, joined)
	require.Equal(t, join[1], question(t, n))
	first.Close()
	second := s.Subscribe("b")
	join, leave := n.next(batch)
	require.Equal(t, [][]string{{"b"}, {"a"}}, [][]string{join, leave})
	require.Empty(t, question(t, n))
	n.setPhase(join, joining, joined)
	n.setPhase(leave, leaving, absent)
	asked := question(t, n)
	require.Contains(t, asked, "a"+ownChannel)
	second.Close()
	question(t, n)
	_, leave = n.next(batch)
	require.Equal(t, []string{"b"}, leave, "b could get a listener again, unasked")
	n.setPhase(leave, leaving, absent)
	question(t, n)
	_, leave = n.next(batch)
	require.Equal(t, []string{asked}, leave)
}

// It stays while another is still subscribed, which may get a listener again.
func TestF36_OwnChannelStaysBesideALeavingOne(t *testing.T) {
	s, n, l := stepwise()
	l.hears = true
	first := s.Subscribe("a")
	join, _ := n.next(batch)
	n.setPhase(join, joining, joined)
	first.Close()
	question(t, n)
	require.True(t, s.Subscribe("a").State().Live)
	join, leave := n.next(batch)
	require.Empty(t, append(join, leave...))
	require.NotEmpty(t, question(t, n), "nobody asks any more")
}
