package pubsub

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// often asks so often that a test does not have to wait.
func often(p *pace) { p.verify = 20 * time.Millisecond }

// Calls have followed the name to another server, and the subscription has not. It does so while somebody listens.
func TestF36_DeafConnectionIsReplaced(t *testing.T) {
	for protocol, speak := range protocols {
		t.Run(protocol, func(t *testing.T) {
			old, next := redistest.Start(t), redistest.Start(t)
			name := redistest.NewName(old)
			client := old.Client(t, speak, named, name.Dialled)
			s := open(t, client, withPace(often))
			sub := s.Subscribe("ch")
			awaitLive(t, sub)

			name.Move(next)
			old.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			await(t, sub, "live again", func(st State) bool { return st.Live && numsubByAdmin(t, next, "ch") == 1 })
			require.Zero(t, numsubByAdmin(t, old, "ch"))
			require.Eventually(t, func() bool { return clients(t, old, "pubsub") == 0 }, patience, time.Millisecond)
		})
	}
}

// While somebody listens, one question is asked in a pace; with nobody, none, and nothing is left on the server.
func TestF36_IdleSubscriberAsksNothing(t *testing.T) {
	srv := redistest.Start(t)
	s := open(t, srv.Client(t), withPace(often))
	subs := []*Subscription{s.Subscribe("a"), s.Subscribe("b"), s.Subscribe("b")}
	awaitLive(t, subs...)
	asked := func() int { return calls(t, srv, "pubsub|numsub") }
	began := time.Now()
	require.Eventually(t, func() bool { return asked() >= 10 }, patience, time.Millisecond)
	require.GreaterOrEqual(t, time.Since(began), 9*20*time.Millisecond)
	require.Equal(t, 2, calls(t, srv, "subscribe"), "one more for its own channel, and a and b together")
	for _, sub := range subs {
		sub.Close()
	}
	require.Eventually(t, func() bool { return known(s) == 0 }, patience, time.Millisecond)
	before := asked()
	time.Sleep(5 * 20 * time.Millisecond) // no event tells
	require.Equal(t, before, asked())
	left := srv.Do(t, "PUBSUB", "CHANNELS")
	channels, err := left.AsStrSlice()
	require.NoError(t, err)
	require.Empty(t, channels)
}

// A user who may not ask hears all the same, and the log says it once.
func TestF36_MayNotAsk(t *testing.T) {
	srv := redistest.Start(t)
	srv.Do(t, "ACL", "SETUSER", "deaf", "on", "nopass", "~*", "&*", "+@all", "-pubsub|numsub")
	log, logged := withLog()
	s := open(t, srv.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = "deaf", "x" }), withPace(often), logged)
	sub := s.Subscribe("ch")
	awaitLive(t, sub)
	require.Eventually(t, func() bool { return log.Count("cannot ask") == 1 }, patience, time.Millisecond)
	srv.Do(t, "PUBLISH", "ch", "0")
	await(t, sub, "told", func(st State) bool { return st.Live && st.Epoch == 1 && st.Messages == 1 })
	srv.Do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	await(t, sub, "live again", func(st State) bool { return st.Live && st.Epoch == 2 })
	require.Eventually(t, func() bool { return calls(t, srv, "pubsub|numsub") >= 2 }, patience, time.Millisecond)
	require.Equal(t, 1, log.Count("cannot ask"))
}
