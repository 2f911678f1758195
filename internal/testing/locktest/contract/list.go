package contract

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
)

var listCases = []testCase{
	{"Locks_OfAPrefix", ofOneHolder, locktest.Options{Lease: locktest.Long}, listPrefix},
	{"Locks_LeavesOutWhatIsNoLock", servers | ofLocks, defaults, listForeign},
	{"Locks_ManyThatComeAndGo", servers | ofLocks, locktest.Options{Lease: locktest.Long}, listMany},
	{"Locks_EndsWithTheContextAndTheLocker", anywhere, defaults, listEnds},
	{"Locks_TellsOfAnOutage", ownRedis, defaults, listOutage},
}

// listed are the locks of a prefix, by key, each of which is yielded once.
func (c *harness) listed(l locktest.Locker, prefix string) map[string]holdfast.Status {
	c.T.Helper()
	all := map[string]holdfast.Status{}
	for s, err := range l.Locks(c.ctx, prefix) {
		require.NoError(c.T, err)
		require.NotContains(c.T, all, s.Key)
		all[s.Key] = s
	}
	return all
}

// A prefix is no pattern, and neither is that of a locker. A listed lock is as Inspect shows it.
func listPrefix(c *harness) {
	const prefix = `a*[b]?\^-`
	l := locktest.Lock(c.T, c.Locker, c.ctx, prefix+"1")
	locktest.Lock(c.T, c.Locker, l.Bind(c.ctx), prefix+"1")
	locktest.Lock(c.T, c.Other, c.ctx, prefix+"2")
	locktest.Lock(c.T, c.Other, c.ctx, prefix)
	for _, key := range []string{"a", `a*b?\^-3`, `ax[b]?\^-4`, `a*[b]x\^-5`, `a*[b]?^-6`, " " + prefix} {
		locktest.Lock(c.T, c.Other, c.ctx, key)
	}
	c.unlock(locktest.Lock(c.T, c.Locker, c.ctx, prefix+"free"))
	queued := c.inQueue(c.Other, prefix+"1")
	c.commands()
	all := c.listed(c.Locker, prefix)
	if !c.Kind.Cluster {
		c.sends("scan", "inspect", "inspect", "inspect")
	}
	require.ElementsMatch(c.T, []string{prefix, prefix + "1", prefix + "2"}, slices.Collect(maps.Keys(all)))
	for key, s := range all {
		is := locktest.Must(c.Locker.Inspect(c.ctx, key))(c.T)
		s.Remaining, is.Remaining = s.Remaining.Truncate(time.Hour), is.Remaining.Truncate(time.Hour)
		for i := range min(len(s.Holders), len(is.Holders)) {
			s.Holders[i].Remaining, is.Holders[i].Remaining = s.Remaining, is.Remaining
		}
		require.Equal(c.T, is, s)
	}
	require.Len(c.T, c.listed(c.Locker, ""), 9)
	for range c.Locker.Locks(c.ctx, "") {
		break
	}
	require.Empty(c.T, c.listed(c.Other, "nothing"))
	c.force(c.Other, prefix+"1")
	c.unlock(locktest.Got(c.T, queued))
}

func listForeign(c *harness) {
	for _, command := range [][]string{
		{"SET", c.Name("text"), "v"},
		{"RPUSH", c.Name("list"), "v"},
		{"HSET", c.Name("hash"), "name", "Ann"},
		{"HSET", c.Name("many"), locktest.Java, "1", "name", "Ann"},
		append([]string{"HSET", c.Name("other")}, c.Kind.OfAnotherKind()...),
		append([]string{"HSET", c.Name("java")}, c.Kind.Fields(locktest.Java, "3")...),
		{"SET", locktest.OfKey("redisson_lock_token", c.Name("java")), "7"},
		{"RPUSH", locktest.OfKey("redisson_lock_queue", c.Name("wanted")), locktest.Java},
		{"HSET", locktest.OfKey("holdfast_heartbeat", c.Name("wanted")), locktest.Java, "1"},
		append([]string{"HSET", c.Kind.Prefix + "{" + "braces}"}, c.Kind.Fields(locktest.Java, "1")...),
	} {
		c.Server.Do(c.T, command...)
	}
	if c.Kind.Prefix != "" {
		c.Kind.Give(c.T, c.Server, c.Kind.Prefix, locktest.Java, "1") // is of no key
	}
	const prefix = `p*[1]?\` // of another locker
	c.Kind.Give(c.T, c.Server, c.Name("px1y\\key"), locktest.Java, "1")
	c.Kind.Give(c.T, c.Server, c.Name(prefix+"key"), locktest.Java, "1")
	prefixed := c.Kind
	prefixed.Prefix = c.Name(prefix)
	other := prefixed.Open(c.T, c.Server.Client(c.T), locktest.Options{})
	require.Equal(c.T, []string{"key"}, slices.Collect(maps.Keys(c.listed(other, ""))))
	all := c.listed(c.Locker, "")
	delete(all, "px1y\\key")
	delete(all, prefix+"key")
	if c.Kind.Prefix != "" {
		require.Contains(c.T, all, "{braces}")
		delete(all, "{braces}")
	}
	require.Equal(c.T, []string{"java"}, slices.Collect(maps.Keys(all)))
	require.Equal(c.T, []any{true, c.Kind.Java(), 3}, []any{all["java"].Held, all["java"].Owner, all["java"].Entries})
}

// What is there all the time is yielded once, also if Redis knows no script. What goes is not
// yielded, or as it was.
func listMany(c *harness) {
	const many = 300
	make := `for i = 1, tonumber(ARGV[1]) do redis.call('HSET', KEYS[1] .. i, unpack(ARGV, 2)) end`
	for _, name := range []string{"stays{k}", "goes{k}"} {
		c.Server.Do(c.T, append([]string{"EVAL", make, "1", c.Name(name), fmt.Sprint(many)}, c.Kind.Fields(locktest.Java, "1")...)...)
	}
	c.Server.Do(c.T, "SCRIPT", "FLUSH")
	seen, gone := map[string]bool{}, 0
	for s, err := range c.Locker.Locks(c.ctx, "") {
		require.NoError(c.T, err)
		require.False(c.T, seen[s.Key], s.Key)
		require.Equal(c.T, c.Kind.Java(), s.Owner)
		seen[s.Key] = true
		if len(seen)%10 == 1 && gone < many {
			for range 50 {
				gone++
				c.Server.Do(c.T, "RENAME", c.Name(fmt.Sprint("goes{k}", gone)), c.Name(fmt.Sprint("comes{k}", gone)))
			}
		}
	}
	for i := 1; i <= many; i++ {
		require.True(c.T, seen[fmt.Sprint("stays{k}", i)], i)
	}
	require.Len(c.T, c.listed(c.Locker, "comes{k}"), many)
	require.Empty(c.T, c.listed(c.Locker, "goes{k}"))
}

func listEnds(c *harness) {
	for _, key := range []string{"a", "b"} {
		locktest.Lock(c.T, c.Other, c.ctx, key)
	}
	only := func(l locktest.Locker, ctx context.Context, want error) {
		c.T.Helper()
		n := 0
		for s, err := range l.Locks(ctx, "a?") {
			require.ErrorIs(c.T, err, want)
			require.ErrorContains(c.T, err, `holdfast: list "a`)
			require.Zero(c.T, s)
			n++
		}
		require.Equal(c.T, 1, n)
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	cancel(errEnough)
	only(c.Locker, ctx, context.Canceled)
	only(c.Locker, ctx, errEnough)
	require.NoError(c.T, c.Locker.Close())
	only(c.Locker, c.ctx, holdfast.ErrClosed)
}

var errEnough = errors.New("enough")

func listOutage(c *harness) {
	locktest.Lock(c.T, c.Other, c.ctx, "a")
	c.away()
	defer c.back()
	locktest.Await(c.T, func() bool {
		var last error
		for _, err := range c.Locker.Locks(c.ctx, "") { // the first may find the connection dead
			require.Error(c.T, err)
			last = err
		}
		return errors.Is(last, holdfast.ErrUnavailable)
	})
}

// CountsReaders checks what Inspect says of readers: the plain ones of a locker count once, and each
// other one by itself. readers are the other half of writers, and others are of another locker.
func CountsReaders(t *testing.T, writers locktest.Locker, readers, others holdfast.Locker) {
	ctx := t.Context()
	var leases []*holdfast.Lease
	w := locktest.Lock(t, writers, ctx, "k")
	for _, reader := range []struct {
		what   string
		of     holdfast.Locker
		ctx    context.Context
		option []holdfast.LockOption
		count  int
	}{
		{"beside its writer", readers, w.Bind(ctx), nil, 1},
		{"plain", readers, ctx, nil, 2},
		{"plain, the second", readers, ctx, nil, 2},
		{"of another locker", others, ctx, nil, 3},
		{"with a label", readers, ctx, []holdfast.LockOption{holdfast.Label("mine")}, 4},
		{"with a lease", readers, ctx, []holdfast.LockOption{holdfast.FixedLease(time.Hour)}, 5},
		{"with a cap", readers, ctx, []holdfast.LockOption{holdfast.MaxHold(time.Hour)}, 6},
		{"plain, the third", readers, ctx, nil, 6},
		{"of another locker, with a cap", others, ctx, []holdfast.LockOption{holdfast.MaxHold(time.Hour)}, 7},
	} {
		leases = append(leases, locktest.Lock(t, reader.of, reader.ctx, "k", reader.option...))
		s := locktest.Must(writers.Inspect(ctx, "k"))(t)
		require.Equal(t, reader.count, s.Readers, reader.what)
		require.Equal(t, reader.count >= 5, s.Remaining > time.Hour/2, "until the lease of the last one ends")
		if w.Err() == nil {
			require.NoError(t, w.Unlock(ctx))
		}
	}
	for _, lease := range leases {
		require.NoError(t, lease.Unlock(ctx))
	}
}
