package multilock_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/multilock"
)

// Clients that ask at once split the votes. The delays between rounds must keep
// that from costing many rounds for each grant, also while a minority is away.
func TestRivals_RoundsPerGrant(t *testing.T) {
	for _, rivals := range []int{2, 8, 64} {
		for _, away := range []int{0, 2} {
			t.Run(strconv.Itoa(rivals)+" rivals, "+strconv.Itoa(away)+" away", func(t *testing.T) {
				const grants = 200
				nodes := startNodes(t, 5)
				var lockers []*multilock.Locker
				for i := range rivals {
					l := open(t, nodes, multilock.WithLease(5*time.Second))
					if i == 0 {
						require.NoError(t, l.Bootstrap(t.Context()))
					}
					lockers = append(lockers, l)
				}
				for _, n := range nodes[:away] {
					n.Kill()
				}
				before := rounds(t, nodes[4])
				var left atomic.Int64
				left.Store(grants)
				var all sync.WaitGroup
				for _, l := range lockers {
					all.Go(func() {
						for left.Add(-1) >= 0 {
							lease, err := l.Lock(context.Background(), "k")
							if err == nil {
								err = lease.Unlock(context.Background())
							}
							if err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				each := float64(rounds(t, nodes[4])-before) / grants
				t.Logf("%.1f rounds per grant", each)
				require.LessOrEqual(t, each, 25.0)
			})
		}
	}
}

// rounds is how many acquires a node has been asked for: each asks for the holder.
func rounds(t *testing.T, s *redistest.Server) int {
	m := s.Do(t, "INFO", "commandstats")
	text, err := m.ToString()
	require.NoError(t, err)
	_, rest, found := strings.Cut(text, "cmdstat_hkeys:calls=")
	if !found {
		return 0
	}
	number, _, _ := strings.Cut(rest, ",")
	n, err := strconv.Atoi(number)
	require.NoError(t, err)
	return n
}

func startNodes(t *testing.T, n int) (nodes []*redistest.Server) {
	for range n {
		nodes = append(nodes, redistest.Start(t))
	}
	return nodes
}

func open(t *testing.T, nodes []*redistest.Server, opts ...multilock.Option) *multilock.Locker {
	var clients []rueidis.Client
	for _, n := range nodes {
		clients = append(clients, n.Client(t))
	}
	l, err := multilock.New(clients, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}
