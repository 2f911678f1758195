package holdfast_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
	"github.com/holdfast-go/holdfast/multilock"
)

// embeddedRedis starts a server inside the test.
func embeddedRedis(t *testing.T) rueidis.Client {
	server := miniredis.RunT(t)
	server.ClockTTL(true) // otherwise no lease ever ends
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{server.Addr()},
		ForceSingleClient: true, // otherwise the client takes the server for a Redis Cluster
		DisableCache:      true, // otherwise NewClient fails: the server knows no CLIENT TRACKING
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// The code of the page is that of tests.
func TestDocsTestingIsTested(t *testing.T) {
	blocks := goBlocks(t, "docs/testing.md")
	require.Len(t, blocks, 5)
	tested := readFile(t, "testing_test.go") + readFile(t, "holdfasttest/example_test.go") + readFile(t, "holdfasttest/virtual_test.go")
	for _, b := range blocks {
		for _, part := range strings.Split(b.code, "\n\n// ") { // the parts of a block need not be neighbours there
			require.Contains(t, tested, part)
		}
	}
}

// All kinds lock, wait and expire on the embedded server, with what the page says.
func TestDocsTesting_EmbeddedServer(t *testing.T) {
	t.Parallel()
	client, nodes := embeddedRedis(t), []rueidis.Client{embeddedRedis(t), embeddedRedis(t), embeddedRedis(t)}
	kinds := maps.Clone(onOneRedis)
	kinds["multilock"] = twice(func(rueidis.Client) (sim.Locker, error) {
		return multilock.New(nodes, multilock.WithoutRestartGuard(), multilock.WithNodeTimeout(3*time.Second))
	})
	for name, both := range kinds {
		here, there := openTwo(t, both, client, client)
		held, err := here.Lock(t.Context(), name)
		require.NoError(t, err)
		_, err = there.TryLock(t.Context(), name)
		require.ErrorIs(t, err, holdfast.ErrNotAcquired)
		require.NoError(t, held.Unlock(t.Context()))
		fixed, err := here.Lock(t.Context(), name, holdfast.FixedLease(time.Second))
		require.NoError(t, err)
		next, err := there.Lock(t.Context(), name) // when it has run out
		require.NoError(t, err, name)
		require.ErrorIs(t, fixed.Unlock(t.Context()), holdfast.ErrLost)
		waiting := make(chan error, 1)
		go func() {
			waiting <- here.Do(t.Context(), name, func(context.Context) error { return nil })
		}()
		require.NoError(t, next.Unlock(t.Context()))
		require.NoError(t, <-waiting, name)
	}
}
