package scripts

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, redistest.Leftovers()...) }

const (
	lease       = 30 * time.Second
	slack       = 20 * time.Second // by which a busy machine may be late to look
	slackMillis = 20_000
	ownA        = "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:01"
	ownB        = "3d2f0a8e-5b0c-4f57-9f2a-0d9f5f3f6a01:010" // ownA is a prefix of it
)

// bounded returns a context that outlasts any call that is not stuck.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// until asks again and again, for what sends no event, until cond is true.
func until(t testing.TB, cond func() bool) {
	t.Helper()
	over := time.After(redistest.Patience)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-over:
			require.Fail(t, "it does not happen")
		}
	}
}

func start(t testing.TB, args ...string) (*redistest.Server, *Node) {
	t.Helper()
	s := redistest.Start(t, args...)
	return s, NewNode(s.Client(t))
}

func acquired(t testing.TB, n *Node, key, owner string) {
	t.Helper()
	a, err := n.Acquire(bounded(t), key, owner, lease)
	require.NoError(t, err)
	require.Equal(t, Acquired{OK: true}, a)
}

func integerOf(t testing.TB, m rueidis.RedisMessage) int64 {
	t.Helper()
	v, err := m.AsInt64()
	require.NoError(t, err)
	return v
}

// state is all that a server holds: each key with its DUMP, and when it expires
// (ms since 1970, -1: never).
func state(t testing.TB, s *redistest.Server) map[string]string {
	t.Helper()
	keys := s.Do(t, "KEYS", "*")
	names, err := keys.AsStrSlice()
	require.NoError(t, err)
	all := map[string]string{}
	for _, name := range names {
		dump := s.Do(t, "DUMP", name)
		text, err := dump.ToString()
		require.NoError(t, err)
		all[name] = text + "|" + time.UnixMilli(expiry(t, s, name)).String()
	}
	return all
}

// expiry is when a key expires, in ms since 1970, negative as in PTTL: what PEXPIRETIME
// tells from Redis 7.0 on.
func expiry(t testing.TB, s *redistest.Server, key string) int64 {
	t.Helper()
	return integerOf(t, s.Do(t, "EVAL", `local before, left, after
repeat
  before, left, after = redis.call('TIME'), redis.call('PTTL', KEYS[1]), redis.call('TIME')
  local ms = before[1] * 1000 + math.floor(before[2] / 1000)
  if ms == after[1] * 1000 + math.floor(after[2] / 1000) then return left < 0 and left or ms + left end
until false`, "1", key))
}

// requireExpiries fails if a key of ours would stay for ever.
func requireExpiries(t testing.TB, s *redistest.Server) {
	t.Helper()
	keys := s.Do(t, "KEYS", "*")
	names, err := keys.AsStrSlice()
	require.NoError(t, err)
	for _, name := range names {
		require.Positive(t, integerOf(t, s.Do(t, "PTTL", name)), name)
	}
}

// verbs runs every verb on key for owner; fenced ones with a counter that
// expires.
var verbs = map[string]func(ctx context.Context, n *Node, key, owner string) error{
	"acquire": func(ctx context.Context, n *Node, key, owner string) error {
		_, err := n.Acquire(ctx, key, owner, lease)
		return err
	},
	"acquire_fenced": func(ctx context.Context, n *Node, key, owner string) error {
		_, err := n.AcquireFenced(ctx, key, owner, lease, Fencing{Reserve: 10, Expiry: time.Hour})
		return err
	},
	"acquire_all": func(ctx context.Context, n *Node, key, owner string) error {
		_, err := n.AcquireAll(ctx, []string{key}, []string{owner}, lease)
		return err
	},
	"recount": func(ctx context.Context, n *Node, key, owner string) error {
		_, err := n.Recount(ctx, key, owner, 2)
		return err
	},
	"renew": func(ctx context.Context, n *Node, key, owner string) error {
		return n.Renew(ctx, lease, []string{key}, []string{owner}, make([]Answer, 1))
	},
	"release": func(ctx context.Context, n *Node, key, owner string) error {
		_, err := n.Release(ctx, key, owner, 0)
		return err
	},
	"release fenced": func(ctx context.Context, n *Node, key, owner string) error {
		_, err := n.Release(ctx, key, owner, 1)
		return err
	},
	"clean_up": func(ctx context.Context, n *Node, key, owner string) error {
		_, err := n.CleanUp(ctx, key, owner)
		return err
	},
	"force_release": func(ctx context.Context, n *Node, key, _ string) error {
		_, err := n.ForceRelease(ctx, key)
		return err
	},
	"inspect": func(ctx context.Context, n *Node, key, _ string) error {
		_, err := n.Inspect(ctx, key)
		return err
	},
}

func long(n int) string { return strings.Repeat("x", n) }
