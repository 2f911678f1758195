package locktest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// OwnerPattern is what an owner looks like: the client's uuid, and a number.
const OwnerPattern = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:0[1-9][0-9]*`

// Layout is a Redis of which a test sees all that a lock kind has there, and every message.
type Layout struct {
	*redistest.Server
	Messages <-chan rueidis.PubSubMessage // on any channel
	t        *testing.T
}

// NewLayout starts the Redis.
func NewLayout(t *testing.T) *Layout {
	messages := make(chan rueidis.PubSubMessage, 16)
	l := &Layout{redistest.Start(t), messages, t}
	c, stop := l.Client(t).Dedicate()
	t.Cleanup(stop)
	c.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { messages <- m }})
	require.NoError(t, c.Do(t.Context(), c.B().Psubscribe().Pattern("*").Build()).Error())
	return l
}

// Only requires that Redis has these keys and no others.
func (l *Layout) Only(keys ...string) {
	l.t.Helper()
	require.ElementsMatch(l.t, keys, Strings(l.t, l, "KEYS", "*"))
}

// Holds requires that key is a lock with one owner, whose field shows the default label.
func (l *Layout) Holds(key, owner string, entries int, lease time.Duration) {
	l.t.Helper()
	fields := Must(l.Do(l.t, "HGETALL", key).AsStrMap())(l.t)
	host, _ := os.Hostname()
	require.Equal(l.t, map[string]string{owner: fmt.Sprintf("%d %s/%d", entries, host, os.Getpid())}, fields)
	l.Expires(key, lease)
}

// Expires requires that key got that expiry a moment ago.
func (l *Layout) Expires(key string, expiry time.Duration) {
	l.t.Helper()
	left := time.Duration(Number(l.t, l.Server, "PTTL", key)) * time.Millisecond
	require.LessOrEqual(l.t, left, expiry)
	require.Greater(l.t, left, expiry-20*time.Second)
}

// Text is the reply to a command.
func (l *Layout) Text(command ...string) string {
	l.t.Helper()
	return Text(l.t, l, command...)
}

// Hears waits for the next message.
func (l *Layout) Hears(channel string) (message string) {
	l.t.Helper()
	m := Within(l.t, l.Messages)
	require.Equal(l.t, channel, m.Channel)
	return m.Message
}
