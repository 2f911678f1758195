package demo_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/examples/internal/demo/demotest"
)

var die = flag.Bool("die", false, "process 1 dies")

// The example of these tests: two processes that wait for their end.
func TestMain(m *testing.M) { demotest.Main(m, func() { demo.Main(parent, child) }) }

func parent(ctx context.Context) error {
	g, running := demo.NewGroup(ctx)
	for i := range 2 {
		g.Go(func() error { return demo.Run(running, i+1) })
	}
	err := g.Wait()
	if ctx.Err() != nil {
		fmt.Println("stopped")
		return nil
	}
	return err
}

func child(ctx context.Context, number int) error {
	fmt.Println("process", number)
	if *die && number == 1 {
		demo.Die()
	}
	<-ctx.Done()
	return ctx.Err()
}

const bothRun = `(?s)process \d.*process \d`

func TestCtrlC(t *testing.T) {
	for _, sent := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		c, out, stderr := demotest.Start(t, bothRun)
		require.NoError(t, c.Process.Signal(sent))
		rest, err := io.ReadAll(out)
		require.NoError(t, err)
		require.NoError(t, c.Wait())
		require.Equal(t, "stopped\n", string(rest))
		require.Empty(t, stderr.String())
	}
}

// The processes hold the standard error of their parent, whose end Wait waits for.
func TestProcessesEndWithTheirParent(t *testing.T) {
	c, _, _ := demotest.Start(t, bothRun)
	killed := time.Now()
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	require.Less(t, time.Since(killed), c.WaitDelay, "processes outlive their parent")
}

// A process that dies ends the others.
func TestProcessDies(t *testing.T) {
	status, _, stderr := demotest.Run(t, "-die")
	require.Equal(t, 1, status)
	require.Regexp(t, `: process 1: killed\n\z`, stderr)
}

func TestBadArguments(t *testing.T) {
	for _, args := range []string{"-unknown", "argument"} {
		status, _, stderr := demotest.Run(t, args)
		require.Equal(t, 2, status)
		require.Contains(t, stderr, args)
	}
}

func TestEmbeddedServerRefusesToKeepData(t *testing.T) {
	m := miniredis.NewMiniRedis()
	for range 2 { // also when it starts again
		require.NoError(t, demo.StartEmbedded(m, "127.0.0.1:0"))
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.Addr()}, DisableCache: true, ForceSingleClient: true})
		require.NoError(t, err)
		do := func(command ...string) error {
			return client.Do(t.Context(), client.B().Arbitrary(command...).Build()).Error()
		}
		for _, command := range [][]string{
			{"SAVE"}, {"bgsave"}, {"BGREWRITEAOF"}, {"CONFIG", "SET", "save", "60 1"}, {"config", "rewrite"},
			{"REPLICAOF", "127.0.0.1", "6379"}, {"SLAVEOF", "127.0.0.1", "6379"}, {"WAIT", "1", "0"}, {"WAITAOF", "1", "0", "0"},
		} {
			require.ErrorContains(t, do(command...), "refused: this Redis is part of an example and forgets everything", command)
		}
		for _, command := range [][]string{{"SET", "key", "value"}, {"PING"}} {
			require.NoError(t, do(command...), command)
		}
		require.NotContains(t, do("CONFIG", "GET", "save").Error(), "refused")
		client.Close()
		m.Close()
	}
}
