package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// beProcess1, beside beHoldfast, has holdfast inherit orphans, as process 1 does, and take itself
// for that.
const beProcess1 = "BE_PROCESS_1"

func init() {
	if os.Getenv(beProcess1) != "" {
		pid = 1
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			panic(err)
		}
	}
}

// A thread that has taken a signal may stand still before it tells of it.
func TestSignalsBeforeAreTold(t *testing.T) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGUSR2)
	defer signal.Stop(signals)
	marks := make(chan os.Signal, 1)
	signal.Notify(marks, syscall.SIGWINCH) // else the first mark takes longer than a signal
	defer signal.Stop(marks)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	var over atomic.Bool
	var others sync.WaitGroup // keep threads busy
	defer others.Wait()
	defer over.Store(true)
	for range 6 {
		others.Go(func() {
			for !over.Load() {
				time.Sleep(50 * time.Microsecond)
			}
		})
	}
	for range 2000 { // one mark for all threads misses some in a hundred
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2))
		require.Equal(t, []os.Signal{syscall.SIGUSR2}, before(signals))
	}
}

// orphans leaves n processes behind, which end at once, and then goes on as the child.
func orphans(n int) []string {
	return []string{"run", key, "--", "sh", "-c", fmt.Sprintf(`i=0; while [ $i -lt %d ]; do (sleep 0 &); i=$((i+1)); done; exec %q %s`, n, os.Args[0], beChild)}
}

// childrenOf returns the processes whose parent has that number, with their states.
func childrenOf(t *testing.T, parent int) (states []string) {
	t.Helper()
	files := redistest.Must(filepath.Glob("/proc/[0-9]*/stat"))(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil { // it has ended
			continue
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if string(fields[1]) == strconv.Itoa(parent) {
			states = append(states, string(fields[0]))
		}
	}
	return states
}

// A child has ended although nobody has waited for it, and when somebody has.
func TestHasEnded(t *testing.T) {
	t.Parallel()
	child := exec.Command("cat")
	in := redistest.Must(child.StdinPipe())(t)
	require.NoError(t, child.Start())
	require.False(t, hasEnded(child.Process))
	require.NoError(t, in.Close())
	eventually(t, func() bool { return hasEnded(child.Process) })
	require.NoError(t, child.Wait())
	require.True(t, hasEnded(child.Process))
}

// As process 1 of a container, holdfast inherits orphans: of 200 that have ended, none stays. And
// it cannot die of a signal. The test needs no right, as its holdfast only takes itself for process 1.
func TestRunAsProcess1(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	inside := func(args ...string) *program {
		c := command(t, s.Addr(), args...)
		c.Env = append(c.Env, beProcess1+"=1")
		return startCommand(t, c)
	}
	p := inside(orphans(200)...)
	p.says("started")
	eventually(t, func() bool { return slices.Equal(childrenOf(t, p.cmd.Process.Pid), []string{"S"}) })
	p.signal(syscall.SIGUSR1)
	p.says("got " + syscall.SIGUSR1.String())
	p.write("exit 5").exits(5)

	first := inside(ran("--fair")...)
	first.says("started")
	waits := inside(ran("--fair")...)
	awaitQueue(t, s, 1)
	waits.signal(syscall.SIGINT)
	waits.exits(130)
	first.write("exit 0").exits(0)
	inside("run", key, "--", "sh", "-c", "kill -INT $$").exits(130)
	require.Empty(t, strings.TrimSpace(first.err.String()))
}

// The command has left the process group of holdfast: Ctrl-C reaches it through holdfast.
func TestTerminalSendsNothingToAnotherGroup(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const script = `trap 'echo got it; exit 4' INT; echo started; while :; do sleep 0.05; done`
	p := startInTerminal(t, command(t, s.Addr(), "run", key, "--", "setsid", "sh", "-c", script))
	p.shows("started")
	p.types(ctrlC)
	p.shows("got it")
	require.ErrorContains(t, p.cmd.Wait(), "exit status 4")
}
