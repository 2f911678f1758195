package rlock_test

import (
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/locktest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// slowly forwards connections to addr, and what comes back late by the given time. Once
// gone is set it forwards nothing.
func slowly(t *testing.T, addr string, late time.Duration, gone *atomic.Bool) (host, port string) {
	l := locktest.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", addr)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { // ends with either connection
				_, _ = io.Copy(out, in)
				_ = out.Close()
			}()
			go func() {
				defer in.Close()
				buffer := make([]byte, 1<<16)
				for {
					n, err := out.Read(buffer)
					if err != nil {
						return
					}
					time.Sleep(late)
					if gone.Load() {
						return
					}
					if _, err := in.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	host, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return host, port
}

// survives takes a lock, kills the master at once, as if its machine were gone with what it
// had not sent, and reports whether the replica that takes its place has the lock. Replicas get
// writes 200 ms late.
func survives(t *testing.T, opts ...holdfast.Option) bool {
	master := redistest.Start(t, "--repl-diskless-sync-delay", "0")
	var replicas []*redistest.Server
	var gone atomic.Bool
	for range 2 {
		host, port := slowly(t, master.Addr(), 200*time.Millisecond, &gone)
		replicas = append(replicas, redistest.Start(t, "--replicaof", host, port))
	}
	locktest.Await(t, func() bool { return locktest.Number(t, master, "WAIT", "2", "100") == 2 })
	l := locktest.Opened(rlock.New(master.Client(t), append(opts, holdfast.WithLease(locktest.Long))...))(t)
	locktest.Lock(t, l, t.Context(), "k")
	gone.Store(true)
	master.Kill()
	best, most := replicas[0], -1
	for _, r := range replicas { // the one with the most of the master's writes, as Sentinel chooses
		if n := locktest.Stat(t, r, "replication", "slave_repl_offset:"); n > most {
			best, most = r, n
		}
	}
	best.Do(t, "REPLICAOF", "NO", "ONE")
	return locktest.Exists(t, best, "k")
}

// The lock of a master that dies at once is there after the failover where replicas have
// confirmed it, and gone where they have not. FAILOVERS says how many masters die.
func TestF25_ReplicasKeepLocks(t *testing.T) {
	t.Parallel()
	times, err := strconv.Atoi(os.Getenv("FAILOVERS"))
	if err != nil {
		times = 2
	}
	with, without := 0, 0
	for i := range times {
		t.Run(strconv.Itoa(i), func(t *testing.T) { // ends its servers
			if survives(t, holdfast.WithReplicas(1, 2*time.Second)) {
				with++
			}
			if survives(t) {
				without++
			}
		})
	}
	t.Logf("of %d locks each, %d survived with WithReplicas(1, 2 s), %d without", times, with, without)
	require.Equal(t, times, with)
	require.Less(t, without, times)
}
