package fair_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/fair"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/scripts"
)

func readme(t *testing.T) string {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(text)
}

// ofFair are the README's sections that hold for this package.
func ofFair(t *testing.T) (sections string) {
	for _, title := range []string{"First come, first served", "Options"} {
		_, text, found := strings.Cut(readme(t), "\n## "+title+"\n")
		require.True(t, found)
		text, _, _ = strings.Cut(text, "\n## ")
		sections += text
	}
	return sections
}

func TestReadmeNamesTheOptionsOfFair(t *testing.T) {
	text, err := os.ReadFile("options.go")
	require.NoError(t, err)
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(With\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(ofFair(t), -1) {
		rows[m[1]] = m[2]
	}
	var options []string
	for _, m := range regexp.MustCompile(`(?m)((?:^//.*\n)+)func (With\w+)\(`).FindAllStringSubmatch(string(text), -1) {
		options = append(options, m[2])
		require.Contains(t, strings.Join(strings.Fields(strings.ReplaceAll(m[1], "//", "")), " "), "Default "+rows[m[2]], m[2])
	}
	for name := range rows {
		require.Contains(t, options, name)
	}
	require.Len(t, options, len(rows))
	require.Equal(t, "5 s", rows["WithStale"])
	require.Equal(t, 5*time.Second, fair.DefaultStale)
	require.Equal(t, "5 s", rows["WithFirstLease"])
	require.Equal(t, 5*time.Second, fair.DefaultFirstLease)
}

// readmeUser returns the words of the README's ACL command, with those that fair
// adds.
func readmeUser(t *testing.T) []string {
	user := regexp.MustCompile("(?m)^ACL SETUSER .*$").FindString(readme(t))
	more := regexp.MustCompile("(?m)^~holdfast_heartbeat:.*$").FindString(readme(t))
	require.NotEmpty(t, user)
	require.NotEmpty(t, more)
	return strings.Fields(user + " " + more)
}

func TestReadmeUserHasTheCommandsOfFair(t *testing.T) {
	var commands []string
	for _, word := range readmeUser(t) {
		if command, ok := strings.CutPrefix(word, "+"); ok {
			commands = append(commands, command)
		}
	}
	require.Subset(t, commands, scripts.FairCommands())
	plain := append([]string{"ping", "subscribe", "unsubscribe"}, scripts.Commands()...)
	require.Subset(t, append(plain, scripts.FairCommands()...), commands)
	require.Len(t, commands, len(unique(commands)))
}

func unique(words []string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words {
		set[w] = true
	}
	return set
}

// Redis logs each command, key and channel that it refuses, also where the
// refusal shows only in a slower wake-up.
func TestF32_ReadmeUserIsRefusedNothing(t *testing.T) {
	s := redistest.Start(t)
	s.Do(t, readmeUser(t)...)
	login := func(o *rueidis.ClientOption) { o.Username, o.Password = "shop", "secret" }
	for name, opts := range map[string][]fair.Option{"with fencing": {fair.WithFencing()}, "without fencing": nil} {
		opts = append(opts, fair.WithLease(1500*time.Millisecond), fair.WithStale(time.Second))
		for _, key := range []string{"sku:42", "sku:{42}"} {
			t.Run(name+" "+key, func(t *testing.T) {
				useEverything(t, key, open(t, s.Client(t, login), opts...), open(t, s.Client(t, login), opts...))
			})
		}
	}
	reply := s.Do(t, "ACL", "LOG")
	log, err := reply.ToArray()
	require.NoError(t, err)
	for _, m := range log {
		entry, err := m.AsStrMap()
		require.NoError(t, err)
		require.Contains(t, []string{"cluster|slots", "cluster|shards", "client|setinfo"}, entry["object"])
	}
}

func open(t *testing.T, c rueidis.Client, opts ...fair.Option) *fair.Locker {
	l, err := fair.New(c, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// useEverything makes each kind of call to Redis: take, renew, enter again,
// inspect, fail, enter the queue, heartbeat, be granted, confirm, give up, release, free
// by force.
func useEverything(t *testing.T, key string, here, there *fair.Locker) {
	ctx := t.Context()
	lease, err := here.Lock(ctx, key)
	require.NoError(t, err)
	before := lease.Deadline()
	require.Eventually(t, func() bool { return lease.Deadline().After(before) }, 5*time.Second, time.Millisecond)
	require.NoError(t, here.Do(lease.Bind(ctx), key, func(context.Context) error { return nil }))
	_, err = there.TryLock(ctx, key)
	require.ErrorIs(t, err, fair.ErrNotAcquired)
	_, err = there.TryLockFor(ctx, key, 500*time.Millisecond) // beyond a heartbeat
	require.ErrorIs(t, err, fair.ErrNotAcquired)

	waiting := func(n int) func() bool {
		return func() bool {
			status, err := here.Inspect(ctx, key)
			return err == nil && status.Waiting == n
		}
	}
	require.Eventually(t, waiting(0), 5*time.Second, time.Millisecond)
	done := make(chan error, 3)
	for range cap(done) {
		go func() {
			done <- there.Do(ctx, key, func(context.Context) error { return nil }, fair.FixedLease(time.Minute))
		}()
	}
	require.Eventually(t, waiting(3), 5*time.Second, time.Millisecond)
	require.NoError(t, lease.Unlock(ctx))
	for range cap(done) {
		require.NoError(t, <-done)
	}
	_, err = here.Lock(ctx, key)
	require.NoError(t, err)
	held, err := there.ForceUnlock(ctx, key)
	require.NoError(t, err)
	require.True(t, held)
}
