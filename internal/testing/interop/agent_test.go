package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
)

// agentWait is for one answer, or for the start or the end of an agent.
const agentWait = 90 * time.Second

// command is one line to an agent; fields that an operation does not need are
// left out. Command.java says what they mean.
type command struct {
	ID       int64    `json:"id"`
	Op       string   `json:"op"`
	Thread   string   `json:"thread,omitempty"`
	Kind     string   `json:"kind,omitempty"`
	Key      string   `json:"key,omitempty"`
	Patience *int64   `json:"patience,omitempty"`
	Lease    *int64   `json:"lease,omitempty"`
	Keys     []string `json:"keys,omitempty"`
	File     string   `json:"file,omitempty"`
	Name     string   `json:"name,omitempty"`
}

// answer is one line of an agent. Answer.java says what its fields mean.
type answer struct {
	ID     int64  `json:"id"`
	OK     bool   `json:"ok"`
	Number int64  `json:"number"`
	Text   string `json:"text,omitempty"`
	Error  string `json:"error,omitempty"`
	Time   int64  `json:"time"` // of the clock that locktest.Clock reads
}

// The errors of answers that a case may want.
const (
	notOwner    = "not the owner"
	interrupted = "interrupted"
)

// options are those of an agent; zero fields leave the default. The Java agent
// takes the lease only.
type options struct {
	Sharded    *bool
	Lease      time.Duration
	Handover   *time.Duration
	WaiterTTL  time.Duration
	GrantLease time.Duration
}

// agent is a program in one of the two languages. Its methods may be called by any
// goroutine, except where they take a testing.TB: by that test's only.
type agent struct {
	lang string         // immutable
	cmd  *exec.Cmd      // immutable
	done chan struct{}  // closed when the process has been reaped
	errs bytes.Buffer   // its standard error; to be read after done
	in   io.WriteCloser // one write for each line

	mu      sync.Mutex
	last    int64                   // id of the last command; guarded by mu
	pending map[int64]chan<- answer // guarded by mu; nil once the agent has ended
}

const (
	inGo   = "Go"
	inJava = "Java"
)

// startAgent starts an agent on a Redis. It is killed when the test ends.
func startAgent(t testing.TB, lang, addrs string, o options) *agent {
	t.Helper()
	a := &agent{lang: lang, done: make(chan struct{}), pending: map[int64]chan<- answer{}}
	if lang == inJava {
		lease := max(o.Lease, 0)
		if lease == 0 {
			lease = 30 * time.Second // Redisson's default
		}
		a.cmd = exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx96m",
			"-jar", jar, addrs, strconv.FormatInt(lease.Milliseconds(), 10))
	} else {
		a.cmd = exec.Command(os.Args[0])
		text := redistest.Must(json.Marshal(o))(t)
		a.cmd.Env = append(os.Environ(), goAgentEnv+"="+addrs, goAgentOptions+"="+string(text),
			"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	}
	a.cmd.Stderr = &a.errs
	in := redistest.Must(a.cmd.StdinPipe())(t)
	a.in = in
	out := redistest.Must(a.cmd.StdoutPipe())(t)
	require.NoError(t, a.cmd.Start())
	go a.read(out) // ends with the process
	t.Cleanup(func() {
		a.kill()
		if t.Failed() && a.errs.Len() > 0 {
			t.Logf("the %s agent said:\n%s", a.lang, a.errs.String())
		}
	})
	return a
}

// ready waits until the agent answers.
func (a *agent) ready(t testing.TB) *agent {
	t.Helper()
	require.True(t, a.do(t, command{Op: "ping"}).OK)
	return a
}

// read hands answers to their waiters, and reaps the process.
func (a *agent) read(out io.Reader) {
	defer close(a.done)
	in := bufio.NewScanner(out)
	for in.Scan() {
		var reply answer
		if err := json.Unmarshal(in.Bytes(), &reply); err != nil {
			reply.Error = "not an answer: " + in.Text()
		}
		a.mu.Lock()
		to := a.pending[reply.ID]
		delete(a.pending, reply.ID)
		a.mu.Unlock()
		if to != nil {
			to <- reply
		}
	}
	_ = a.cmd.Wait() // the status of a killed process says nothing
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, to := range a.pending {
		close(to)
	}
	a.pending = nil
}

// send gives a command. The channel gets the answer, or is closed with the agent.
func (a *agent) send(c command) <-chan answer {
	to := make(chan answer, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending == nil {
		close(to)
		return to
	}
	a.last++
	c.ID = a.last
	a.pending[c.ID] = to
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // of plain data
	}
	_, _ = a.in.Write(append(text, '\n')) // fails only if the agent has ended; then read tells
	return to
}

// do gives a command and waits for the answer.
func (a *agent) do(t testing.TB, c command) answer {
	t.Helper()
	return answerOf(t, a.send(c))
}

// answerOf waits for an answer.
func answerOf(t testing.TB, from <-chan answer) answer {
	t.Helper()
	select {
	case reply, ok := <-from:
		require.True(t, ok, "the agent has ended")
		return reply
	case <-time.After(agentWait):
		require.FailNow(t, "no answer")
		return answer{}
	}
}

// pause stops the process where it stands, and returns when it stands; resume lets
// it go on.
func (a *agent) pause() {
	_ = a.cmd.Process.Signal(syscall.SIGSTOP) // fails only if it has ended
	for !redistest.Stopped(a.cmd.Process.Pid) {
		time.Sleep(time.Millisecond)
	}
}

func (a *agent) resume() { _ = a.cmd.Process.Signal(syscall.SIGCONT) }

// kill ends the process and returns when it is gone; nothing if it is.
func (a *agent) kill() {
	_ = a.cmd.Process.Kill() // fails only if it has ended
	<-a.done
	_ = a.in.Close()
}

// start starts a server and an agent in each of the languages named.
func start(t testing.TB, o options, langs ...string) (redis, []*agent) {
	t.Helper()
	needJava(t)
	s := one(redistest.Start(t))
	return s, startOn(t, s, o, langs...)
}

// startOn starts agents on a Redis. They start at the same time.
func startOn(t testing.TB, s redis, o options, langs ...string) []*agent {
	t.Helper()
	var all []*agent
	for _, lang := range langs {
		all = append(all, startAgent(t, lang, s.addrs, o))
	}
	for _, a := range all {
		a.ready(t)
	}
	return all
}
