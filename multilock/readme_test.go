package multilock_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/scripts"
)

func readme(t *testing.T) string {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(text)
}

// Each option that rlock has not, and each whose default is another, has a row; and
// its comment says the same default.
func TestReadmeNamesTheOptionsOfMultilock(t *testing.T) {
	_, section, found := strings.Cut(readme(t), "\n## On a quorum\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	options, err := os.ReadFile("options.go")
	require.NoError(t, err)
	shared, err := os.ReadFile("../rlock/options.go")
	require.NoError(t, err)
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(With\\w+)` \\| ([^|]*?) ?\\|").FindAllStringSubmatch(section, -1) {
		rows[m[1]] = m[2]
	}
	comments := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)((?:^//.*\n)+)func (With\w+)\(`).FindAllStringSubmatch(string(options), -1) {
		comments[m[2]] = strings.Join(strings.Fields(strings.ReplaceAll(m[1], "//", "")), " ")
	}
	for name, row := range rows {
		require.Contains(t, comments, name)
		if row != "" {
			require.Contains(t, comments[name], "Default "+row, name)
		}
	}
	for name := range comments {
		if !strings.Contains(string(shared), "func "+name+"(") {
			require.Contains(t, rows, name)
		}
	}
	require.Equal(t, "50 ms", rows["WithNodeTimeout"])
	require.Equal(t, 50*time.Millisecond, multilock.DefaultNodeTimeout)
}

// Redis logs each command, key and channel that it refuses.
func TestF32_ReadmeUserIsRefusedNothing(t *testing.T) {
	user := regexp.MustCompile("(?m)^ACL SETUSER .*$").FindString(readme(t))
	more := regexp.MustCompile(`(?m)^~holdfast_node .*$`).FindString(readme(t))
	require.NotEmpty(t, user)
	require.NotEmpty(t, more)
	words := strings.Fields(user + " " + more)
	var commands []string
	for _, word := range words {
		if command, ok := strings.CutPrefix(word, "+"); ok {
			commands = append(commands, command)
		}
	}
	require.ElementsMatch(t, append([]string{"ping", "subscribe", "unsubscribe"}, scripts.QuorumCommands()...), commands)

	nodes := startNodes(t, 3)
	for _, n := range nodes {
		n.Do(t, words...)
	}
	login := func(o *rueidis.ClientOption) { o.Username, o.Password = "shop", "secret" }
	make1 := func() *multilock.Locker {
		var clients []rueidis.Client
		for _, n := range nodes {
			clients = append(clients, n.Client(t, login))
		}
		l, err := multilock.New(clients, multilock.WithLease(10*time.Second), multilock.WithNodeTimeout(time.Second), multilock.WithFencing())
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	here, there := make1(), make1()
	ctx := t.Context()
	require.NoError(t, here.Bootstrap(ctx, multilock.NothingHeld()))
	lease, err := here.Lock(ctx, "sku:1")
	require.NoError(t, err)
	before := lease.Deadline()
	require.Eventually(t, func() bool { return lease.Deadline().After(before) }, 20*time.Second, time.Millisecond)
	require.NoError(t, here.Do(lease.Bind(ctx), "sku:1", func(context.Context) error { return nil }))
	_, err = there.TryLockFor(ctx, "sku:1", 2*time.Second)
	require.ErrorIs(t, err, multilock.ErrNotAcquired)
	require.NoError(t, lease.Unlock(ctx))
	require.NoError(t, there.Do(ctx, "sku:1", func(context.Context) error { return nil }))
	_, err = there.Inspect(ctx, "sku:1")
	require.NoError(t, err)
	_, err = there.ForceUnlock(ctx, "sku:1")
	require.NoError(t, err)
	for _, n := range there.Nodes(ctx) {
		require.True(t, n.Vote, n.Node)
	}
	for _, n := range nodes {
		reply := n.Do(t, "ACL", "LOG")
		log, err := reply.ToArray()
		require.NoError(t, err)
		for _, m := range log {
			entry, err := m.AsStrMap()
			require.NoError(t, err)
			require.Contains(t, []string{ // what rueidis tries when it opens a connection, or takes it back
				"cluster|slots", "cluster|shards", "client|setinfo", "punsubscribe", "sunsubscribe", "discard",
			}, entry["object"])
		}
	}
}
