package wire

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

// queued has the program use the next connection that is lent in a way for which rueidis needs a queue.
func queued(t *testing.T, client rueidis.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	require.ErrorIs(t, client.Do(ctx, client.B().Blpop().Key("jobs").Timeout(0.01).Build()).Error(), rueidis.Nil)
}

// A server that refuses even PING does not end the process: rueidis panics if it happens to what it sends
// when a connection with a queue is given back.
func TestRefusalsOnADedicatedConnection(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, s *redistest.Server, client rueidis.Client) (end func()){
		"F27 MISCONF": func(t *testing.T, s *redistest.Server, _ rueidis.Client) (end func()) {
			s.Do(t, "CONFIG", "SET", "save", "3600 1000000")
			require.NoError(t, os.Mkdir(filepath.Join(s.Dir(), "dump.rdb"), 0o700)) // no place for a snapshot
			s.Do(t, "BGSAVE")
			return func() { s.Do(t, "CONFIG", "SET", "save", "") }
		},
		"F29 BUSY": func(t *testing.T, s *redistest.Server, client rueidis.Client) (end func()) {
			s.Do(t, "CONFIG", "SET", "lua-time-limit", "200") // busy-reply-threshold since Redis 7
			hung := make(chan struct{})
			go func() {
				defer close(hung)
				_, _ = s.TryDo("EVAL", "while true do end", "0") // ends with an error by SCRIPT KILL
			}()
			return func() {
				require.NoError(t, client.Do(bounded(t), client.B().ScriptKill().Build()).Error())
				<-hung
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := redistest.Start(t)
			client := s.Client(t)
			r := NewRedis(client, RedisSettings{Replicas: 1, ReplicaTimeout: time.Millisecond, Patience: redistest.Patience})
			renew := func() error {
				return r.Renew(t.Context(), lease, []string{"k"}, []string{ofA(1)}, make([]watchdog.Answer, 1))
			}
			_, err := r.Acquire(t.Context(), asking("k", ofA(1)))
			require.ErrorIs(t, err, holdfast.ErrNotReplicated)
			queued(t, client)
			end := begin(t, s, client)
			until(t, func() bool { return client.Do(bounded(t), client.B().Ping().Build()).Error() != nil })
			for range 3 {
				require.True(t, Replied(renew()))
			}
			end()
			until(t, func() bool { return !Replied(renew()) })
		})
	}
}

// A connection is used again and again, unless it has a queue: that one is used once, and another is dialled.
func TestADedicatedConnectionIsUsedAgain(t *testing.T) {
	s := redistest.Start(t)
	client := s.Client(t)
	r := NewRedis(client, RedisSettings{Replicas: 1, ReplicaTimeout: time.Millisecond, Patience: redistest.Patience})
	dials := func() int {
		return must(strconv.Atoi(must(r.info(bounded(t), "stats", "total_connections_received"))(t)))(t)
	}
	acquire := func(number int) {
		_, err := r.Acquire(t.Context(), asking("k"+strconv.Itoa(number), ofA(number)))
		require.ErrorIs(t, err, holdfast.ErrNotReplicated)
	}
	acquire(1)
	before := dials()
	for i := range 5 {
		acquire(2 + i)
	}
	require.Equal(t, before, dials())
	queued(t, client)
	for i := range 5 {
		acquire(7 + i)
	}
	require.Equal(t, before+1, dials())
}
