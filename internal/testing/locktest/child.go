package locktest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// A test that needs a process to kill or to pause starts its own test binary
// once more, as a child that runs one registered function instead of the tests.
// Both talk in lines over the child's standard input and output. A child whose
// parent has died ends by itself.

const (
	childEnv  = "HOLDFAST_TEST_CHILD" // in a child: the name of its function
	childWait = Patience              // for one line, or for the end, of a child
)

// childMain is the function of a child; the process ends when it returns.
type childMain func(k Kind, p *Parent) error

// childMains are all registered functions; written by init functions only.
var childMains = map[string]childMain{}

// RegisterChild names a function for StartChild; files call it in init.
func RegisterChild(name string, f childMain) { childMains[name] = f }

// Main is the TestMain of a lock kind. In a child it runs the child's function instead
// of the tests.
func Main(m *testing.M, k Kind) {
	if name := os.Getenv(childEnv); name != "" {
		runChild(k, name)
	}
	MoreAtOnce()
	goleak.VerifyTestMain(m, redistest.Leftovers()...)
}

func runChild(k Kind, name string) {
	p := &Parent{Args: os.Args[1:], lines: make(chan string)}
	go p.listen() // ends with the process
	if err := childMains[name](k, p); err != nil {
		fmt.Fprintf(os.Stderr, "child %s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Parent is a child's end of the conversation.
type Parent struct {
	Args  []string    // those given to StartChild; immutable
	lines chan string // what the parent says
	mu    sync.Mutex  // of standard output
}

func (p *Parent) listen() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		p.lines <- in.Text()
	}
	os.Exit(0) // the parent has died, or wants no more of this child
}

// Say tells the parent a line, at once.
func (p *Parent) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(os.Stdout, format+"\n", args...)
}

// Hear waits for the next line of the parent.
func (p *Parent) Hear() string { return <-p.lines }

// Client opens a client of the Redis at addr, or clients of all of a topology, which lives as long as the child. addr is
// that of a [Topology] or of [Proxies.Ways].
func (*Parent) Client(addr string) (rueidis.Client, error) {
	var all []rueidis.Client
	for _, one := range strings.Split(addr, ",") {
		given, own, _ := strings.Cut(one, "=")
		o := rueidis.ClientOption{InitAddress: []string{given}, DisableCache: true}
		redistest.DialGiven(&o, own)
		client, err := rueidis.NewClient(o)
		if err != nil {
			return nil, err
		}
		all = append(all, client)
	}
	return together(all), nil
}

// Child is a parent's side of the talk. Methods but Expect may be called by any
// goroutine.
type Child struct {
	t     testing.TB     // immutable
	name  string         // immutable
	cmd   *exec.Cmd      // immutable
	in    io.WriteCloser // immutable
	lines chan string    // what the child says; closed with its end
	done  chan struct{}  // closed when it has been reaped
	errs  bytes.Buffer   // its standard error; to be read after done
}

// StartChild starts a child that runs the named function. It is killed when the
// test ends.
func StartChild(t testing.TB, name string, args ...string) *Child {
	t.Helper()
	require.Contains(t, childMains, name)
	c := &Child{t: t, name: name, lines: make(chan string, 1024), done: make(chan struct{})}
	c.cmd = exec.Command(os.Args[0], args...)
	// A program under the race detector takes a second to exit unless told not to.
	c.cmd.Env = append(os.Environ(), childEnv+"="+name, "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	c.cmd.Stderr = &c.errs
	in := Must(c.cmd.StdinPipe())(t)
	c.in = in
	out := Must(c.cmd.StdoutPipe())(t)
	require.NoError(t, c.cmd.Start())
	go c.read(out)
	t.Cleanup(c.Kill)
	return c
}

// read owns the child's end: it collects its lines, and then its status.
func (c *Child) read(out io.Reader) {
	defer close(c.done)
	defer close(c.lines)
	in := bufio.NewScanner(out)
	for in.Scan() {
		c.lines <- in.Text()
	}
	if err := c.cmd.Wait(); err != nil && c.errs.Len() > 0 {
		c.t.Errorf("child %s: %v\n%s", c.name, err, c.errs.String())
	}
}

// Say tells the child a line.
func (c *Child) Say(line string) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Errorf("child %s: %v", c.name, err)
	}
}

// Expect waits for the child's next line, which must begin with the given word,
// and returns the rest of it.
func (c *Child) Expect(word string) string {
	c.t.Helper()
	reply, rest := c.Next()
	require.Equal(c.t, word, reply, "child %s said %q", c.name, rest)
	return rest
}

// Next waits for the child's next line, and returns its first word and the rest.
func (c *Child) Next() (word, rest string) {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		require.True(c.t, ok, "child %s ended", c.name)
		word, rest, _ = strings.Cut(line, " ")
	case <-time.After(childWait):
		require.FailNow(c.t, "child is silent", "child %s", c.name)
	}
	return word, rest
}

// Pause stops the child where it stands (SIGSTOP) and returns when it stands.
func (c *Child) Pause() {
	c.signal(syscall.SIGSTOP)
	for !redistest.Stopped(c.cmd.Process.Pid) {
		runtime.Gosched()
	}
}

// Resume lets a paused child go on (SIGCONT).
func (c *Child) Resume() { c.signal(syscall.SIGCONT) }

func (c *Child) signal(s os.Signal) {
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Errorf("child %s: %v: %v", c.name, s, err)
	}
}

// Kill ends the child (SIGKILL) and returns when it is gone; nothing if it is.
func (c *Child) Kill() {
	_ = c.cmd.Process.Kill() // fails only if the child has ended already
	c.drain()
}

// Await waits for the child's end, which must be a good one.
func (c *Child) Await() {
	late := time.AfterFunc(childWait, func() {
		c.t.Errorf("child %s does not end", c.name)
		_ = c.cmd.Process.Kill()
	})
	c.drain()
	late.Stop()
}

// drain drops what the child still says and returns when it is gone.
func (c *Child) drain() {
	for range c.lines {
	}
	<-c.done
}

// Clock reads the machine's monotonic clock, which all processes share.
func Clock() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // no such clock
	}
	return time.Duration(ts.Nano())
}

// clockBase is one instant on both clocks: as exact as the best of some tries.
var clockBase = func() (base struct {
	local  time.Time
	shared time.Duration
}) {
	best := time.Hour
	for range 100 {
		local := time.Now()
		shared := Clock()
		if took := time.Since(local); took < best {
			best, base.local, base.shared = took, local, shared
		}
	}
	return base
}()

// ClockAt is the shared clock's reading at t, which carries a monotonic reading.
func ClockAt(t time.Time) time.Duration { return clockBase.shared + t.Sub(clockBase.local) }
