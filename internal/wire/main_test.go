package wire

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
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
	for ctx := bounded(t); !cond(); time.Sleep(2 * time.Millisecond) {
		require.NoError(t, ctx.Err(), "it does not happen")
	}
}

func start(t testing.TB, args ...string) (*redistest.Server, *Redis) {
	t.Helper()
	s := redistest.Start(t, args...)
	return s, NewRedis(s.Client(t), RedisSettings{})
}

// loggedIn is a Redis by the client of a user whose password is secret.
func loggedIn(t testing.TB, s *redistest.Server, user string) *Redis {
	t.Helper()
	return NewRedis(s.Client(t, func(o *rueidis.ClientOption) { o.Username, o.Password = user, "secret" }), RedisSettings{})
}

// requireRefused requires that an error says so, and that waiting does not cure it.
func requireRefused(t testing.TB, says string, err error, about ...any) {
	t.Helper()
	require.ErrorContains(t, err, says, about...)
	require.Equal(t, Refused, OutcomeOf(err), about...)
}

func asking(key, owner string) AcquireRequest {
	return AcquireRequest{Key: key, Owner: owner, Lease: lease}
}

func askingEach(keys, owners []string) (asks []AcquireRequest) {
	for i, key := range keys {
		asks = append(asks, asking(key, owners[i]))
	}
	return asks
}

func acquired(t testing.TB, n *Redis, key, owner string) {
	t.Helper()
	require.Equal(t, AcquireReply{OK: true}, must(n.Acquire(bounded(t), asking(key, owner)))(t))
}

// number, text and listed are the reply of a server to a command.
func number(t testing.TB, s *redistest.Server, command ...string) int64 {
	t.Helper()
	m := s.Do(t, command...)
	return must(m.AsInt64())(t)
}

func text(t testing.TB, s *redistest.Server, command ...string) string {
	t.Helper()
	m := s.Do(t, command...)
	return must(m.ToString())(t)
}

func listed(t testing.TB, s *redistest.Server, command ...string) []string {
	t.Helper()
	m := s.Do(t, command...)
	return must(m.AsStrSlice())(t)
}

// must is the result of a call that has to end well.
func must[T any](result T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return result
	}
}

// state is all that a server holds: each key with its DUMP, and when it expires
// (ms since 1970, -1: never).
func state(t testing.TB, s *redistest.Server) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range listed(t, s, "KEYS", "*") {
		all[name] = text(t, s, "DUMP", name) + "|" + time.UnixMilli(expiry(t, s, name)).String()
	}
	return all
}

// expiry is when a key expires, in ms since 1970, negative as in PTTL: what PEXPIRETIME
// tells from Redis 7.0 on.
func expiry(t testing.TB, s *redistest.Server, key string) int64 {
	t.Helper()
	return number(t, s, "EVAL", `local before, left, after
repeat
  before, left, after = redis.call('TIME'), redis.call('PTTL', KEYS[1]), redis.call('TIME')
  local ms = before[1] * 1000 + math.floor(before[2] / 1000)
  if ms == after[1] * 1000 + math.floor(after[2] / 1000) then return left < 0 and left or ms + left end
until false`, "1", key)
}
