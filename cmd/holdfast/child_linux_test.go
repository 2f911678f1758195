package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// beReaper, beside beHoldfast, has holdfast inherit orphans, as process 1 does.
const beReaper = "BE_REAPER"

func init() {
	if os.Getenv(beReaper) != "" {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			panic(err)
		}
	}
}

// orphans leaves n processes behind, which end at once, and then goes on as the child.
func orphans(n int) []string {
	return []string{"run", key, "--", "sh", "-c", fmt.Sprintf(`i=0; while [ $i -lt %d ]; do (sleep 0 &); i=$((i+1)); done; exec %q %s`, n, os.Args[0], beChild)}
}

// childrenOf returns the processes whose parent has that number, with their states.
func childrenOf(t *testing.T, parent int) (states []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
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

// holdfast inherits orphans as process 1 does. Of 200 that have ended, none stays.
func TestRunReapsOrphans(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := command(t, s.Addr(), orphans(200)...)
	c.Env = append(c.Env, beReaper+"=1")
	p := startCommand(t, c)
	p.says("started")
	eventually(t, func() bool { return len(childrenOf(t, c.Process.Pid)) == 1 })
	p.write("exit 5").exits(5)
}

// As process 1 of a container, holdfast cannot die of a signal.
func TestRunAsProcess1(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	inside := func(args ...string) *program {
		c := command(t, s.Addr(), args...)
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
		if err := exec.Command("unshare", "--pid", "--fork", "true").Run(); err != nil {
			t.Skip("no PID namespace here: ", err)
		}
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
