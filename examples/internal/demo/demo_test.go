package demo_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/examples/internal/demo"
	"github.com/holdfast-go/holdfast/internal/testing/demotest"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
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
		status, rest, stderr := demotest.When(t, bothRun, func(c *exec.Cmd) { require.NoError(t, c.Process.Signal(sent)) })
		require.Zero(t, status, stderr)
		require.Equal(t, "stopped\n", rest)
		require.Empty(t, stderr)
	}
}

// The processes hold the standard error of their parent, whose end Wait waits for.
func TestProcessesEndWithTheirParent(t *testing.T) {
	var killed time.Time
	status, _, _ := demotest.When(t, bothRun, func(c *exec.Cmd) {
		killed = time.Now()
		require.NoError(t, c.Process.Kill())
	})
	require.Equal(t, -1, status, "killed")
	require.Less(t, time.Since(killed), redistest.Patience, "processes outlive their parent")
}

// A process that dies ends the others.
func TestProcessDies(t *testing.T) {
	demotest.Fails(t, 1, `: process 1: killed\n\z`, "-die")
}

func TestBadArguments(t *testing.T) {
	for _, args := range []string{"-unknown", "argument"} {
		demotest.Fails(t, 2, args, args)
	}
}

func TestEmbeddedServerRefusesToKeepData(t *testing.T) {
	m := miniredis.NewMiniRedis()
	for range 2 { // also when it starts again
		require.NoError(t, demo.StartEmbedded(m, "127.0.0.1:0"))
		client := redistest.Must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{m.Addr()}, DisableCache: true, ForceSingleClient: true}))(t)
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
