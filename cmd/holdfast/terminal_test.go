package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
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
	keys := redistest.Must(pty.Start(c))(t)
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
	defer func() {
		if s.t.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Logf("the screen shows no %q: %q", text, s.text)
		}
	}()
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

// Ctrl-C comes when holdfast has just got the lock.
func TestTerminalSendsCtrlCBeforeTheCommandRuns(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for range 20 {
		proxy := redistest.NewProxy(t, s.Addr())
		taken, stopped := make(chan struct{}), make(chan struct{})
		proxy.OnReply(func(cmd []string) redistest.Verdict {
			if strings.HasPrefix(cmd[0], "EVAL") && number(t, s, "EXISTS", key) == 1 {
				proxy.OnReply(nil)
				close(taken)
				<-stopped
			}
			return redistest.Pass
		})
		p := startInTerminal(t, command(t, proxy.Addr(), "run", key, "--", "sleep", "100"))
		<-taken
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
		p.types(ctrlC)
		close(stopped)
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
		require.ErrorContains(t, p.cmd.Wait(), "signal: interrupt")
		requireFree(t, s, key)
	}
}

func TestTerminalJobControl(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	shell := command(t, s.Addr())
	shell.Path, shell.Args = "/bin/sh", []string{"sh", "-i"}
	p := startInTerminal(t, shell)
	p.types("PS1='ready> '" + enter)
	p.shows("ready> ")
	// The command must not read before the test says so: it could take a line from the shell while it stops.
	dir := t.TempDir()
	script, goOn := filepath.Join(dir, "script"), filepath.Join(dir, "go-on")
	require.NoError(t, os.WriteFile(script, []byte(`echo started
until test -e `+goOn+`; do sleep 0.01; done
read line
echo "read $line"
exit 9
`), 0o600))
	p.types(strings.Join([]string{os.Args[0], "run", key, "--", "sh", script}, " ") + enter)
	p.shows("started")
	p.types(ctrlZ)
	p.shows("ready> ")
	p.types("jobs" + enter)
	p.shows("Stopped")
	p.shows("ready> ")
	p.types("fg" + enter)
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	p.types("hello" + enter)
	p.shows("read hello")
	p.shows("ready> ")
	p.types("echo status $?" + enter)
	p.shows("status 9")
	requireFree(t, s, key)
	p.types("exit" + enter)
	require.NoError(t, p.cmd.Wait())
}
