package main

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/examples/internal/demo/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

// The three terms end by death, by loss, and with the work.
func TestLeadersFollowOneAnother(t *testing.T) {
	for _, where := range []string{"embedded", "real"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			var args []string
			if where == "real" {
				args = []string{"-redis", redistest.Start(t).Addr()}
			}
			status, stdout, stderr := demotest.Run(t, args...)
			require.Zero(t, status, stdout+stderr)
			require.Empty(t, stderr)
			require.Contains(t, stdout, "was killed")
			require.Contains(t, stdout, "has lost the lock")
			require.GreaterOrEqual(t, demotest.Number(t, stdout, `All 30 pieces of work are done, by (\d+) leaders`), 3)
		})
	}
}

// The processes ride out a restart of Redis.
func TestRedisRestarts(t *testing.T) {
	redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c, out, stderr := demotest.Start(t, "(?s)leads.*leads", "-redis", redis.Addr())
	redis.Kill()
	redis.Restart()
	rest, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, c.Wait(), stderr.String())
	require.Contains(t, string(rest), "All 30 pieces of work are done")
}

func newMember(t *testing.T) (*member, *redistest.Server) {
	server := redistest.Start(t)
	client := server.Client(t)
	locker, err := rlock.New(client, holdfast.WithLease(lease), holdfast.WithFencing())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, locker.Close()) })
	return &member{1, &demo.Redis{Client: client, Run: "test"}, locker}, server
}

func TestG10_LateLeaderIsRefused(t *testing.T) {
	m, _ := newMember(t)
	for _, fence := range []int64{1, 2, 2} {
		_, err := m.work(t.Context(), fence)
		require.NoError(t, err)
	}
	_, err := m.work(t.Context(), 1)
	require.ErrorIs(t, err, errLate)
}

// A leader whose journal fails tries again.
func TestJournalFails(t *testing.T) {
	m, server := newMember(t)
	server.Do(t, "SET", m.key("journal"), "no list")
	for range pieces - 1 {
		server.Do(t, "RPUSH", "list", "0")
	}
	failed := make(chan struct{})
	var once sync.Once
	defer server.Monitor(t, func(c redistest.Command) {
		if c.Words[0] == "LINDEX" {
			once.Do(func() { close(failed) })
		}
	})()
	ended := make(chan error, 1)
	go func() { ended <- m.stand(context.Background()) }()
	<-failed
	server.Do(t, "RENAME", "list", m.key("journal"))
	require.NoError(t, <-ended)
}
