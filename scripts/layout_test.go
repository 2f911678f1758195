package scripts

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// Keys, fields, values, expiries, channel and message are Redisson's, byte for
// byte.
func TestLayout(t *testing.T) {
	s, n := start(t)
	ctx := bounded(t)
	listener, stop := s.Client(t).Dedicate()
	t.Cleanup(stop)
	received := make(chan rueidis.PubSubMessage, 8)
	listener.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { received <- m }})
	require.NoError(t, listener.Do(ctx, listener.B().Psubscribe().Pattern("*").Build()).Error())

	has := func(command []string, want ...string) {
		t.Helper()
		m := s.Do(t, command...)
		got, err := m.AsStrSlice()
		if err != nil {
			text, err := m.ToString()
			require.NoError(t, err)
			got = []string{text}
		}
		require.ElementsMatch(t, want, got, command)
	}
	pttl := func(key string, want time.Duration) {
		t.Helper()
		require.InDelta(t, want.Milliseconds(), integerOf(t, s.Do(t, "PTTL", key)), slackMillis)
	}
	fields := func(key string) []string {
		t.Helper()
		m := s.Do(t, "HGETALL", key)
		pairs, err := m.AsStrMap()
		require.NoError(t, err)
		var flat []string
		for f, v := range pairs {
			flat = append(flat, f, v)
		}
		return flat
	}

	for _, c := range []struct{ key, channel, token, gone string }{
		{"sku:42", "redisson_lock__channel:{sku:42}", "redisson_lock_token:{sku:42}", "holdfast_gone:{sku:42}:" + ownA},
		{"{sku}:42", "redisson_lock__channel:{sku}:42", "redisson_lock_token:{sku}:42", "holdfast_gone:{sku}:42:" + ownA},
	} {
		t.Run(c.key, func(t *testing.T) {
			_, err := n.Acquire(ctx, c.key, ownA, 30*time.Second)
			require.NoError(t, err)
			has([]string{"KEYS", "*"}, c.key)
			require.Equal(t, []string{ownA, "1"}, fields(c.key))
			pttl(c.key, 30*time.Second)

			_, err = n.Recount(ctx, c.key, ownA, 2)
			require.NoError(t, err)
			require.Equal(t, []string{ownA, "2"}, fields(c.key))
			ok := make([]Answer, 1)
			require.NoError(t, n.Renew(ctx, 60*time.Second, []string{c.key}, []string{ownA}, ok))
			require.Equal(t, []string{ownA, "2"}, fields(c.key))
			pttl(c.key, 60*time.Second)

			_, err = n.Release(ctx, c.key, ownA, 0)
			require.NoError(t, err)
			has([]string{"KEYS", "*"})
			m := <-received
			require.Equal(t, c.channel, m.Channel)
			require.Equal(t, "0", m.Message)

			a, err := n.AcquireFenced(ctx, c.key, ownA, 30*time.Second, Fencing{Reserve: 3, Expiry: 7 * 24 * time.Hour})
			require.NoError(t, err)
			has([]string{"KEYS", "*"}, c.key, c.token)
			require.Equal(t, []string{ownA, "1"}, fields(c.key))
			pttl(c.key, 30*time.Second)
			has([]string{"GET", c.token}, decimal(a.FenceEnd))
			pttl(c.token, 7*24*time.Hour)
			s.Do(t, "DEL", c.token)

			_, err = n.CleanUp(ctx, c.key, ownA)
			require.NoError(t, err)
			has([]string{"KEYS", "*"}, c.gone)
			has([]string{"GET", c.gone}, "1")
			pttl(c.gone, time.Minute)
			m = <-received
			require.Equal(t, c.channel, m.Channel)
			require.Equal(t, "0", m.Message)

			s.Do(t, "HSET", c.key, "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:1", "3")
			_, err = n.ForceRelease(ctx, c.key)
			require.NoError(t, err)
			has([]string{"KEYS", "*"}, c.gone)
			m = <-received
			require.Equal(t, c.channel, m.Channel)
			require.Equal(t, "0", m.Message)
			s.Do(t, "FLUSHALL")
			require.Empty(t, received)
		})
	}
}
