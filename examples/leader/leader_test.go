package main

import (
	"context"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/internal/testing/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

// The three terms end by death, by loss, and with the work.
func TestLeadersFollowOneAnother(t *testing.T) {
	demotest.OnBoth(t, func(t *testing.T, redis ...string) {
		t.Parallel()
		stdout := demotest.Succeeds(t, redis...)
		require.Contains(t, stdout, "was killed")
		require.Contains(t, stdout, "has lost the lock")
		require.GreaterOrEqual(t, demotest.Number(t, stdout, `All 30 pieces of work are done, by (\d+) leaders`), 3)
	})
}

// The processes ride out a restart of Redis.
func TestRedisRestarts(t *testing.T) {
	redis := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	status, rest, stderr := demotest.When(t, "(?s)leads.*leads", func(*exec.Cmd) {
		redis.Kill()
		redis.Restart()
	}, "-redis", redis.Addr())
	require.Zero(t, status, stderr)
	require.Contains(t, rest, "All 30 pieces of work are done")
}

func newMember(t *testing.T) (*member, *redistest.Server) {
	server := redistest.Start(t)
	client := server.Client(t)
	locker := redistest.Must(rlock.New(client, holdfast.WithLease(lease), holdfast.WithFencing()))(t)
	t.Cleanup(func() { require.NoError(t, locker.Close()) })
	return &member{1, &demo.Redis{Client: client, Run: "test"}, locker}, server
}

func TestG10_LateLeaderIsRefused(t *testing.T) {
	m, _ := newMember(t)
	for _, fence := range []int64{1, 2, 2} {
		redistest.Must(m.work(t.Context(), fence))(t)
	}
	_, err := m.work(t.Context(), 1)
	require.ErrorIs(t, err, demo.ErrLate)
}

// A leader whose journal fails tries again.
func TestJournalFails(t *testing.T) {
	m, server := newMember(t)
	server.Do(t, "SET", m.redis.Key("journal"), "no list")
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
	server.Do(t, "RENAME", "list", m.redis.Key("journal"))
	require.NoError(t, <-ended)
}
