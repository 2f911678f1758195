package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/rlock"
)

// The test program is holdfast itself if beHoldfast is set, and the command that holdfast
// runs if its first argument is beChild.
const (
	beHoldfast = "BE_HOLDFAST"
	beChild    = "be-child"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == beChild:
		child()
	case os.Getenv(beHoldfast) != "":
		main()
	}
	goleak.VerifyTestMain(m, redistest.Leftovers()...)
}

// child prints "started", every line that it reads and every signal that it gets. It exits
// with the status N at the line "exit N", and with 3 at the end of its input.
func child() {
	signals, lines := make(chan os.Signal, 8), make(chan string)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
		os.Exit(3)
	}()
	fmt.Println("started")
	for {
		select {
		case s := <-signals:
			fmt.Println("got", s)
		case l := <-lines:
			if n, ok := strings.CutPrefix(l, "exit "); ok {
				status, _ := strconv.Atoi(n)
				os.Exit(status)
			}
			fmt.Println("read", l)
		}
	}
}

// children is the command line of child.
var children = []string{os.Args[0], beChild}

// program is holdfast as it runs.
type program struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner // its standard output, and that of its child
	err redistest.Log
}

// command returns holdfast on a server, before it starts.
func command(t *testing.T, address string, args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), beHoldfast+"=1", envURL+"=redis://"+address)
	return c
}

// start starts holdfast.
func start(t *testing.T, address string, args ...string) *program {
	t.Helper()
	return startCommand(t, command(t, address, args...))
}

// started starts holdfast and its child.
func started(t *testing.T, address string, args ...string) *program {
	t.Helper()
	p := start(t, address, ran(args...)...)
	p.says("started")
	return p
}

func startCommand(t *testing.T, c *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, cmd: c}
	var err error
	p.in = redistest.Must(c.StdinPipe())(t)
	out, w, err := os.Pipe() // its end tells that the child has ended as well
	require.NoError(t, err)
	c.Stdout = w
	if c.Stderr == nil {
		c.Stderr = &p.err
	}
	require.NoError(t, c.Start())
	require.NoError(t, w.Close())
	require.NoError(t, out.SetReadDeadline(time.Now().Add(redistest.Patience)))
	p.out = bufio.NewScanner(out)
	t.Cleanup(func() {
		_ = c.Process.Kill()
		require.NoError(t, out.Close())
	})
	return p
}

// says waits for lines of the output, in this order and without others between.
func (p *program) says(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		require.True(p.t, p.out.Scan(), "no more output, %q is missing", l)
		require.Equal(p.t, l, p.out.Text())
	}
}

func (p *program) write(line string) *program {
	p.t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(p.t, err)
	return p
}

func (p *program) signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// ends waits for the end of holdfast and of its child, and returns the output and the exit
// status of holdfast, or the negative number of the signal that ended it.
func (p *program) ends() (rest string, status int) {
	p.t.Helper()
	for p.out.Scan() {
		rest += p.out.Text() + "\n"
	}
	require.NoError(p.t, p.out.Err())
	_ = p.cmd.Wait() // the status is in ProcessState
	if s := p.cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signaled() {
		return rest, -int(s.Signal())
	}
	return rest, p.cmd.ProcessState.ExitCode()
}

// exits is ends for a program whose output does not matter.
func (p *program) exits(status int) {
	p.t.Helper()
	_, got := p.ends()
	require.Equal(p.t, status, got, p.err.String())
}

// do runs holdfast to its end, and requires its status. A machine that stands still for seconds looks like a server that does
// not answer.
func do(t *testing.T, want int, address, input string, args ...string) (out, errors string) {
	t.Helper()
	out, errors, status := once(t, address, input, args...)
	for tries := 1; status == statusAway && tries < 5; tries++ {
		t.Log(errors)
		out, errors, status = once(t, address, input, args...)
	}
	require.Equal(t, want, status, errors)
	return out, errors
}

// once is do where a server may be away.
func once(t *testing.T, address, input string, args ...string) (out, errors string, status int) {
	t.Helper()
	p := start(t, address, args...)
	_, _ = io.WriteString(p.in, input) // it may have ended
	require.NoError(t, p.in.Close())
	out, status = p.ends()
	return out, p.err.String(), status
}

// newLocker returns another locker.
func newLocker(t *testing.T, s *redistest.Server, opts ...holdfast.Option) *rlock.Locker {
	t.Helper()
	l := redistest.Must(rlock.New(s.Client(t), opts...))(t)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// requireFree requires that key is free and has no waiter.
func requireFree(t *testing.T, s *redistest.Server, key string) {
	t.Helper()
	for _, name := range []string{key, "redisson_lock_queue:{" + key + "}"} {
		require.Zero(t, number(t, s, "EXISTS", name), name)
	}
}

// number returns the answer of an administrator's command.
func number(t *testing.T, s *redistest.Server, command ...string) int64 {
	t.Helper()
	return redistest.Must(s.Do(t, command...).AsInt64())(t)
}

// eventually asks again and again, for what sends no event.
func eventually(t *testing.T, met func() bool) {
	t.Helper()
	require.Eventually(t, met, redistest.Patience, 5*time.Millisecond)
}
