package fair_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// layouts are keys and what follows the prefix of the names that belong to them, by
// Redisson's rule: braces around the key, unless it has one.
var layouts = map[string]string{
	"sku:42": "{sku:42}", "a b\tc": "{a b\tc}", "\x00\xff\r\n": "{\x00\xff\r\n}", "tail}": "{tail}}",
	"{sku}:42": "{sku}:42", "sku:{42": "sku:{42", "{}": "{}",
}

// After each call, all data in Redis and every message are Redisson's, or have a name that
// Redisson does not use.
func TestLayout(t *testing.T) {
	for key, suffix := range layouts {
		t.Run(strconv.Quote(key), func(t *testing.T) {
			t.Parallel()
			r := &layoutRig{t: t, s: redistest.Start(t)}
			queue, scores := "redisson_lock_queue:"+suffix, "redisson_lock_timeout:"+suffix
			heartbeats, counter := "holdfast_heartbeat:"+suffix, "redisson_lock_token:"+suffix
			messages := r.listen()
			holder, waiter := r.open(fair.WithFencing()), r.open(fair.WithFencing())

			l, err := holder.Lock(t.Context(), key)
			require.NoError(t, err)
			require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:0[1-9][0-9]*$`, l.Owner())
			r.holds(30*time.Second, key, l.Owner())
			require.Equal(t, strconv.FormatInt(l.Fence(), 10), r.text("GET", counter))
			r.expires(7*24*time.Hour, counter)
			r.only(key, counter)

			next := make(chan *fair.Lease, 1)
			go func() {
				l, err := waiter.Lock(context.Background(), key)
				if err != nil {
					r.t.Error(err)
				}
				next <- l
			}()
			require.Eventually(t, func() bool { return r.number("LLEN", queue) == 1 }, locktest.Patience, time.Millisecond)
			r.only(key, counter, queue, scores, heartbeats)
			owner := r.text("LINDEX", queue, "0")
			client, _, _ := strings.Cut(owner, ":")
			require.NotEqual(t, l.Owner()[:36], client)
			r.expires(7*24*time.Hour, queue)
			r.expires(7*24*time.Hour, scores)
			require.EqualValues(t, 1, r.number("ZCARD", scores))
			require.InDelta(t, 30_000, r.number("ZSCORE", scores, owner)-r.now(), 5000)
			require.EqualValues(t, 2, r.number("HLEN", heartbeats)) // with the label
			require.InDelta(t, 5000, r.number("HGET", heartbeats, client)-r.now(), 5000)
			r.expires(65*time.Second, heartbeats)
			channel := "redisson_lock__channel:" + suffix + ":"
			require.Equal(t, []string{channel + client}, r.channels("redisson_*"))
			require.Empty(t, messages)

			require.NoError(t, l.Unlock(t.Context()))
			granted := <-next
			require.Equal(t, owner, granted.Owner())
			r.holds(5*time.Second, key, owner)
			m := <-messages
			require.Equal(t, channel+client, m[0])
			grant, named := strings.CutSuffix(m[1], " for "+key)
			require.True(t, named, "%q", m[1])
			require.Regexp(t, "^"+regexp.QuoteMeta(fmt.Sprintf("%s 5000 %d ", owner, granted.Fence()))+`\d+$`, grant)
			r.only(key, counter, heartbeats)

			require.NoError(t, granted.Unlock(t.Context()))
			r.only(counter, heartbeats)
			require.Empty(t, messages)
			_, err = waiter.Lock(t.Context(), key)
			require.NoError(t, err)
			_, err = holder.ForceUnlock(t.Context(), key)
			require.NoError(t, err)
			r.only(counter, heartbeats)
			require.Empty(t, messages, "nobody waits")
			require.Eventually(t, func() bool { return len(r.channels("redisson_*")) == 0 }, locktest.Patience, time.Millisecond)
		})
	}
}

// A caller that gives up in doubt leaves a tombstone of its own, and nothing else.
func TestLayoutOfTombstones(t *testing.T) {
	for key, suffix := range layouts {
		t.Run(strconv.Quote(key), func(t *testing.T) {
			t.Parallel()
			r := &layoutRig{t: t, s: redistest.Start(t)}
			proxy := redistest.NewProxy(t, r.s.Addr())
			locker := r.openOn(r.s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }))
			lost := proxy.SwallowReply(1, func(cmd []string) bool { return cmd[0] == "EVAL" && len(cmd) > 5 }) // Redis does not know the script yet
			_, err := locker.TryLock(t.Context(), key)
			require.ErrorIs(t, err, fair.ErrUnknown)
			<-lost
			var names []string
			require.Eventually(t, func() bool {
				names = r.keys()
				return len(names) == 1 && names[0] != key
			}, locktest.Patience, time.Millisecond)
			owner, ok := strings.CutPrefix(names[0], "holdfast_gone:"+suffix+":")
			require.True(t, ok, "%q", names[0])
			require.Regexp(t, `^[0-9a-f-]{36}:0[1-9][0-9]*$`, owner)
			require.Equal(t, "1", r.text("GET", names[0]))
			r.expires(time.Minute, names[0])
		})
	}
}

// layoutRig looks at a Redis.
type layoutRig struct {
	t *testing.T
	s *redistest.Server
}

func (r *layoutRig) open(opts ...fair.Option) *fair.Locker { return r.openOn(r.s.Client(r.t), opts...) }

func (r *layoutRig) openOn(client rueidis.Client, opts ...fair.Option) *fair.Locker {
	r.t.Helper()
	l, err := fair.New(client, opts...)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = l.Close() })
	return l
}

// listen hears every message on any channel.
func (r *layoutRig) listen() <-chan [2]string {
	messages := make(chan [2]string, 16)
	c, stop := r.s.Client(r.t).Dedicate()
	r.t.Cleanup(stop)
	c.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { messages <- [2]string{m.Channel, m.Message} }})
	require.NoError(r.t, c.Do(r.t.Context(), c.B().Psubscribe().Pattern("*").Build()).Error())
	return messages
}

func (r *layoutRig) keys() []string {
	r.t.Helper()
	m := r.s.Do(r.t, "KEYS", "*")
	all, err := m.AsStrSlice()
	require.NoError(r.t, err)
	return all
}

// only requires that Redis has these keys and no others.
func (r *layoutRig) only(keys ...string) {
	r.t.Helper()
	require.ElementsMatch(r.t, keys, r.keys())
}

// holds requires that key is a lock with one owner, entered once.
func (r *layoutRig) holds(lease time.Duration, key, owner string) {
	r.t.Helper()
	m := r.s.Do(r.t, "HGETALL", key)
	fields, err := m.AsStrMap()
	require.NoError(r.t, err)
	require.Equal(r.t, map[string]string{owner: "1 " + label()}, fields)
	r.expires(lease, key)
}

// expires requires that key got that expiry a moment ago.
func (r *layoutRig) expires(expiry time.Duration, key string) {
	r.t.Helper()
	left := time.Duration(r.number("PTTL", key)) * time.Millisecond
	require.LessOrEqual(r.t, left, expiry)
	require.Greater(r.t, left, expiry-4*time.Second)
}

func (r *layoutRig) channels(pattern string) []string {
	r.t.Helper()
	m := r.s.Do(r.t, "PUBSUB", "CHANNELS", pattern)
	all, err := m.AsStrSlice()
	require.NoError(r.t, err)
	return slices.DeleteFunc(all, func(c string) bool { return strings.Contains(c, ":self:") }) // by which a subscriber learns that it is heard
}

// now is the server's clock in milliseconds.
func (r *layoutRig) now() int64 {
	r.t.Helper()
	m := r.s.Do(r.t, "TIME")
	words, err := m.AsStrSlice()
	require.NoError(r.t, err)
	seconds, err := strconv.ParseInt(words[0], 10, 64)
	require.NoError(r.t, err)
	return seconds * 1000
}

func (r *layoutRig) number(command ...string) int64 {
	r.t.Helper()
	m := r.s.Do(r.t, command...)
	n, err := m.AsInt64()
	require.NoError(r.t, err)
	return n
}

func (r *layoutRig) text(command ...string) string {
	r.t.Helper()
	m := r.s.Do(r.t, command...)
	s, err := m.ToString()
	require.NoError(r.t, err)
	return s
}

// label is the default one.
func label() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
