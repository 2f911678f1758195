package wire

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/watchdog"
)

// A server that refuses even PING does not end the process: rueidis panics if it happens to what it sends
// when a connection is given back that has been used with a context without a deadline.
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
			r := NewRedisWith(client, RedisSettings{Replicas: 1, ReplicaTimeout: time.Millisecond, Patience: redistest.Patience})
			ctx, cancel := context.WithCancel(context.Background()) // which rueidis can only obey with a queue
			defer cancel()
			renew := func() error {
				return r.Renew(ctx, lease, []string{"k"}, []string{ofA(1)}, make([]watchdog.Answer, 1))
			}
			// The connection that the program has used so is the next one to be lent, and has a queue already.
			require.ErrorIs(t, client.Do(ctx, client.B().Blpop().Key("jobs").Timeout(0.01).Build()).Error(), rueidis.Nil)
			_, err := r.Acquire(ctx, Fencing{}, AcquireRequest{"k", ofA(1), lease})
			require.ErrorAs(t, err, new(notReplicated))
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
