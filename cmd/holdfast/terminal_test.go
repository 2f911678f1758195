package main

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// terminal is a pseudo-terminal with a program in the foreground.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	keys *os.File

	mu   sync.Mutex
	text string // guarded by mu: what the screen has shown since the last shows
}

func startInTerminal(t *testing.T, c *exec.Cmd) *terminal {
	t.Helper()
	keys, err := pty.Start(c)
	require.NoError(t, err)
	s, over := &terminal{t: t, cmd: c, keys: keys}, make(chan struct{})
	go func() {
		defer close(over)
		for b := make([]byte, 1024); ; {
			n, err := keys.Read(b)
			s.mu.Lock()
			s.text += string(b[:n])
			s.mu.Unlock()
			if err != nil { // EIO: nobody has the terminal any more
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = keys.Close()
		<-over
	})
	return s
}

func (s *terminal) types(text string) {
	s.t.Helper()
	_, err := io.WriteString(s.keys, text)
	require.NoError(s.t, err)
}

// shows waits for a text on the screen, and returns what came before it.
func (s *terminal) shows(text string) (before string) {
	s.t.Helper()
	eventually(s.t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		was, rest, found := strings.Cut(s.text, text)
		if found {
			before, s.text = was, rest
		}
		return found
	})
	return before
}

const ctrlC, ctrlZ, enter = "\x03", "\x1a", "\r"

func TestTerminalSendsCtrlCOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := startInTerminal(t, command(t, s.Addr(), ran()...))
	p.shows("started")
	signal := func(s os.Signal) { require.NoError(t, p.cmd.Process.Signal(s)) }
	signal(syscall.SIGSTOP)
	p.types(ctrlC)
	p.shows("got interrupt")
	signal(syscall.SIGCONT)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1} { // are forwarded after the interrupt, if that is
		signal(s)
		require.NotContains(t, p.shows("got "+s.String()), "got interrupt")
	}
	p.types("exit 6" + enter)
	require.ErrorContains(t, p.cmd.Wait(), "exit status 6")
	requireFree(t, s, key)
}

func TestTerminalCtrlCEndsBoth(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := startInTerminal(t, command(t, s.Addr(), "run", key, "--", "sh", "-c", "test -t 0 && test -t 1 && echo started && exec sleep 1000"))
	p.shows("started")
	p.types(ctrlC)
	require.ErrorContains(t, p.cmd.Wait(), "signal: interrupt")
	requireFree(t, s, key)
}

func TestTerminalJobControl(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	shell := command(t, s.Addr())
	shell.Path, shell.Args = "/bin/sh", []string{"sh", "-i"}
	p := startInTerminal(t, shell)
	p.types("PS1='ready> '" + enter)
	p.shows("ready> ")
	p.types(strings.Join(append([]string{os.Args[0]}, ran()...), " ") + enter)
	p.shows("started")
	p.types(ctrlZ)
	p.shows("ready> ")
	p.types("jobs" + enter)
	p.shows("Stopped")
	p.shows("ready> ")
	p.types("fg" + enter)
	p.types("hello" + enter)
	p.shows("read hello")
	p.types("exit 9" + enter)
	p.shows("ready> ")
	p.types("echo status $?" + enter)
	p.shows("status 9")
	requireFree(t, s, key)
	p.types("exit" + enter)
	require.NoError(t, p.cmd.Wait())
}
