package rlock_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// layouts are the names that belong to keys, by Redisson's rule: braces around
// the key, unless it has one.
var layouts = []struct{ key, channel, counter, tombstone string }{
	{"sku:42", "redisson_lock__channel:{sku:42}", "redisson_lock_token:{sku:42}", "holdfast_gone:{sku:42}:"},
	{"a b\tc", "redisson_lock__channel:{a b\tc}", "redisson_lock_token:{a b\tc}", "holdfast_gone:{a b\tc}:"},
	{"käse", "redisson_lock__channel:{käse}", "redisson_lock_token:{käse}", "holdfast_gone:{käse}:"},
	{"\x00\xff\r\n", "redisson_lock__channel:{\x00\xff\r\n}", "redisson_lock_token:{\x00\xff\r\n}", "holdfast_gone:{\x00\xff\r\n}:"},
	{"tail}", "redisson_lock__channel:{tail}}", "redisson_lock_token:{tail}}", "holdfast_gone:{tail}}:"},
	{"{sku}:42", "redisson_lock__channel:{sku}:42", "redisson_lock_token:{sku}:42", "holdfast_gone:{sku}:42:"},
	{"sku:{42", "redisson_lock__channel:sku:{42", "redisson_lock_token:sku:{42", "holdfast_gone:sku:{42:"},
	{"{}", "redisson_lock__channel:{}", "redisson_lock_token:{}", "holdfast_gone:{}:"},
}

// After each call, all data in Redis and every message are Redisson's, byte for byte.
func TestLayout(t *testing.T) {
	for _, l := range layouts {
		t.Run(strconv.Quote(l.key), func(t *testing.T) {
			r := &layoutRig{t: t, s: redistest.Start(t)}
			messages := r.listen()
			ctx := t.Context()
			locker := userLocker(t, r.s.Client(t))

			lease, err := locker.Lock(ctx, l.key)
			require.NoError(t, err)
			require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:0[1-9][0-9]*$`, lease.Owner())
			r.holds(30*time.Second, l.key, lease.Owner(), "1")
			r.only(l.key)

			// A nested entry changes the count, and leaves the expiry as it is.
			r.s.Do(t, "PEXPIRE", l.key, "25000")
			inner, err := locker.Lock(lease.Bind(ctx), l.key)
			require.NoError(t, err)
			r.holds(25*time.Second, l.key, lease.Owner(), "2")
			require.NoError(t, inner.Unlock(ctx))
			r.holds(25*time.Second, l.key, lease.Owner(), "1")
			r.only(l.key)

			// A waiter subscribes, and leaves nothing else.
			other := userLocker(t, r.s.Client(t))
			waiting := make(chan error, 1)
			go func() { waiting <- other.Do(ctx, l.key, func(context.Context) error { return nil }) }()
			require.Eventually(t, func() bool { return r.listeners(l.channel) == 1 }, locktest.Patience, time.Millisecond)
			r.holds(25*time.Second, l.key, lease.Owner(), "1")
			r.only(l.key)
			require.Empty(t, messages)

			require.NoError(t, lease.Unlock(ctx))
			require.NoError(t, <-waiting)
			require.Eventually(t, func() bool { return r.listeners(l.channel) == 0 }, locktest.Patience, time.Millisecond)
			r.only()
			for range 2 { // of two holds
				r.hears(messages, l.channel)
			}

			_, err = locker.Lock(ctx, l.key)
			require.NoError(t, err)
			_, err = other.ForceUnlock(ctx, l.key)
			require.NoError(t, err)
			r.hears(messages, l.channel)
			r.only()
			require.Empty(t, messages)
		})
	}
}

func TestLayoutOfFences(t *testing.T) {
	for _, l := range layouts {
		t.Run(strconv.Quote(l.key), func(t *testing.T) {
			r := &layoutRig{t: t, s: redistest.Start(t)}
			client := r.s.Client(t)
			week := userLocker(t, client, rlock.WithFencing())
			ever := userLocker(t, client, rlock.WithFencing(), rlock.WithFenceExpiry(0))
			for _, step := range []struct {
				locker *rlock.Locker
				expiry time.Duration // of the counter, then; negative: none
			}{{week, 7 * 24 * time.Hour}, {week, 7 * 24 * time.Hour}, {ever, -1}, {week, -1}} {
				lease, err := step.locker.Lock(t.Context(), l.key)
				require.NoError(t, err)
				r.holds(30*time.Second, l.key, lease.Owner(), "1")
				r.counts(l.counter, lease.Fence(), step.expiry)
				r.only(l.key, l.counter)
				require.NoError(t, lease.Unlock(t.Context()))
				r.counts(l.counter, lease.Fence(), step.expiry)
				r.only(l.counter)
			}
		})
	}
}

func TestLayoutOfTombstones(t *testing.T) {
	for _, l := range layouts {
		t.Run(strconv.Quote(l.key), func(t *testing.T) {
			r := &layoutRig{t: t, s: redistest.Start(t)}
			messages := r.listen()
			proxy := redistest.NewProxy(t, r.s.Addr())
			locker := userLocker(t, r.s.Client(t, func(o *rueidis.ClientOption) { o.InitAddress = []string{proxy.Addr()} }))
			owner := make(chan string, 1)
			proxy.OnReply(func(cmd []string) redistest.Verdict {
				if cmd[0] == "EVAL" && len(cmd) > 5 { // the attempt, as Redis does not know the script yet
					owner <- cmd[5]
					proxy.OnReply(nil)
					return redistest.Cut
				}
				return redistest.Pass
			})
			_, err := locker.TryLock(t.Context(), l.key)
			require.ErrorIs(t, err, rlock.ErrUnknown)
			r.hears(messages, l.channel) // it had been acquired
			tombstone := l.tombstone + <-owner
			r.only(tombstone)
			require.Equal(t, "1", r.text("GET", tombstone))
			r.expires(time.Minute, tombstone)
		})
	}
}

// layoutRig looks at a Redis.
type layoutRig struct {
	t *testing.T
	s *redistest.Server
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

// hears waits for the message of a release.
func (r *layoutRig) hears(messages <-chan [2]string, channel string) {
	r.t.Helper()
	select {
	case m := <-messages:
		require.Equal(r.t, [2]string{channel, "0"}, m)
	case <-time.After(locktest.Patience):
		require.FailNow(r.t, "no message")
	}
}

// only requires that Redis has these keys and no others.
func (r *layoutRig) only(keys ...string) {
	r.t.Helper()
	m := r.s.Do(r.t, "KEYS", "*")
	all, err := m.AsStrSlice()
	require.NoError(r.t, err)
	require.ElementsMatch(r.t, keys, all)
}

// holds requires that key is a lock with one owner.
func (r *layoutRig) holds(lease time.Duration, key, owner, count string) {
	r.t.Helper()
	m := r.s.Do(r.t, "HGETALL", key)
	fields, err := m.AsStrMap()
	require.NoError(r.t, err)
	require.Equal(r.t, map[string]string{owner: count + " " + label()}, fields)
	r.expires(lease, key)
}

// counts requires that key is a fence counter.
func (r *layoutRig) counts(key string, fence int64, expiry time.Duration) {
	r.t.Helper()
	require.Equal(r.t, strconv.FormatInt(fence, 10), r.text("GET", key))
	if expiry < 0 {
		require.EqualValues(r.t, -1, r.pttl(key))
		return
	}
	r.expires(expiry, key)
}

// expires requires that key got that expiry a moment ago.
func (r *layoutRig) expires(expiry time.Duration, key string) {
	r.t.Helper()
	left := r.pttl(key)
	require.LessOrEqual(r.t, left, expiry.Milliseconds())
	require.Greater(r.t, left, expiry.Milliseconds()-5000)
}

func (r *layoutRig) pttl(key string) int64 {
	m := r.s.Do(r.t, "PTTL", key)
	left, err := m.ToInt64()
	require.NoError(r.t, err)
	return left
}

func (r *layoutRig) text(command ...string) string {
	m := r.s.Do(r.t, command...)
	s, err := m.ToString()
	require.NoError(r.t, err)
	return s
}

func (r *layoutRig) listeners(channel string) int64 {
	m := r.s.Do(r.t, "PUBSUB", "NUMSUB", channel)
	said, err := m.AsIntMap()
	require.NoError(r.t, err)
	return said[channel]
}

func userLocker(t *testing.T, c rueidis.Client, opts ...rlock.Option) *rlock.Locker {
	l, err := rlock.New(c, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// label is the default one.
func label() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}
