package redistest

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// Patience is how long a test waits for what must happen, on a machine that is busy or stands
// still. Nothing but a failure takes so long.
const Patience = time.Minute

const (
	startTimeout = Patience // for one redis-server to answer; 11 ms are usual
	startTries   = 5        // ports tried before Start gives up
)

// errPortTaken is the failure to start that another port cures.
var errPortTaken = errors.New("port taken")

// Server is one redis-server process, or the place of one between Kill and
// Restart. All methods may be called concurrently. A fault that cannot be
// carried out fails the test that started the server.
type Server struct {
	t     testing.TB // immutable after Start
	dir   string     // immutable after Start
	args  []string   // the arguments given to Start, as the server understands them; immutable after Start
	clock string     // file that tells the server the time; "": it sees the true one; immutable after Start
	watch string     // configuration file of a Sentinel; "": a server; immutable after Start
	port  int        // immutable after Start

	sentinels Sentinels // which its clients ask for it; nil: none; immutable after Start
	admin     admin     // has its own lock

	logIn func(*rueidis.ClientOption) // see LogIn
	peers []*Server                   // see Peers

	mu   sync.Mutex
	proc *process // guarded by mu; nil while no process runs
	wall wall     // what the file clock tells; guarded by mu
}

// Start runs a redis-server on a free loopback port in a temporary directory
// and returns when it answers. It is killed when the test ends. By default it
// persists nothing; args follow the defaults and override them. The log must
// stay on standard output at level notice or below.
//
// The environment variable REDIS_SERVER names another program than redis-server, by a
// path or as it is on the PATH: another version from 6.2 on, or Valkey. args are those of
// Redis 7.0; an older server gets what does the same there. Where there is nothing that
// does, or no program, the test is skipped, or fails if the environment variable CI is "true".
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, &Server{args: args})
}

// start runs what s describes by args, clock and watch.
func start(t testing.TB, s *Server) *Server {
	t.Helper()
	if _, err := exec.LookPath(program()); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("redistest:", err)
		}
		t.Skip("redistest:", err)
	}
	v, err := installed()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	for _, arg := range s.args {
		if from7[arg] {
			NeedRedis7(t, "it has no "+arg)
		}
	}
	s.t, s.dir, s.args, s.wall, s.admin.server = t, t.TempDir(), v.understood(s.args), wall{rate: 1}, s
	for range startTries {
		s.port = FreePort(t)
		if s.proc, err = s.launch(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop()
	})
	return s
}

// program is the server's.
func program() string { return cmp.Or(os.Getenv("REDIS_SERVER"), "redis-server") }

// Addr is the host and port of the server, the same for its whole life.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Dir is the working directory of the server, removed with the test.
func (s *Server) Dir() string { return s.dir }

// Pause stops the process where it stands (SIGSTOP) and returns when it stands.
// Its connections stay open and answer nothing; new ones are taken by the system
// and answer nothing either.
func (s *Server) Pause() {
	s.signal(syscall.SIGSTOP, func(p *process) {
		for !Stopped(p.cmd.Process.Pid) {
			runtime.Gosched()
		}
	})
}

// Resume lets a paused process go on (SIGCONT).
func (s *Server) Resume() { s.signal(syscall.SIGCONT, func(*process) {}) }

// Kill ends the process (SIGKILL) and returns when it is gone. Connections are
// reset and later ones refused until Restart.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stop() {
		s.t.Errorf("redistest: Kill: no server is running on %s", s.Addr())
	}
}

// Restart kills the process if it still runs and starts it again with the same
// port, directory and arguments, so that an append-only file survives. It
// returns when the server answers, if only with LOADING; a [ClusterNode] when it
// serves its slots, which takes 2 s.
func (s *Server) Restart() {
	s.restart()
	if s.isClusterNode() {
		s.AwaitClusterNode(s.t)
	}
}

func (s *Server) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
	var err error
	if s.proc, err = s.launch(); err != nil {
		s.t.Errorf("redistest: Restart: %v", err)
	}
}

func (s *Server) runs() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc != nil
}

// isClusterNode reports whether it was started with [ClusterNode].
func (s *Server) isClusterNode() bool { return slices.Contains(s.args, "--cluster-config-file") }

// signal sends sig and then waits as told.
func (s *Server) signal(sig os.Signal, wait func(*process)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc == nil {
		s.t.Errorf("redistest: %v: no server is running on %s", sig, s.Addr())
		return
	}
	if err := s.proc.cmd.Process.Signal(sig); err != nil {
		s.t.Errorf("redistest: %v: %v", sig, err)
		return
	}
	wait(s.proc)
}

// stop kills the process and waits for its end; false if there was none. s.mu is
// held.
func (s *Server) stop() bool {
	if s.proc == nil {
		return false
	}
	s.proc.kill()
	s.proc = nil
	s.admin.close()
	return true
}

// process is one run of redis-server.
type process struct {
	cmd     *exec.Cmd
	out     Log
	done    chan struct{} // closed when the process has been reaped
	started time.Time
}

// launch starts a process and waits until it answers. A process that fails to
// do so is killed, and its output is part of the error.
func (s *Server) launch() (*process, error) {
	p := &process{done: make(chan struct{}), started: time.Now()}
	if s.clock != "" {
		if err := s.writeClock(p.started); err != nil {
			return nil, err
		}
	}
	args := []string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--dir", s.dir}
	if s.watch == "" {
		args = append(args, "--save", "", "--appendonly", "no")
	} else {
		args = append([]string{s.watch, "--sentinel"}, args...)
	}
	p.cmd = exec.Command(program(), append(args, s.args...)...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.Env = s.environment()
	p.cmd.SysProcAttr = DieWithParent()

	started := make(chan error)
	go func() { // owned by launch until started is answered, then by kill
		// The parent-death signal follows the thread that forked, so that
		// thread must live as long as the server.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the status of a killed process says nothing
			sweep(p.cmd.Process.Pid)
		}
		close(p.done)
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, err
	}
	if err := p.awaitReady(s.Addr()); err != nil {
		p.kill()
		if strings.Contains(p.out.String(), "Address already in use") {
			err = errPortTaken
		}
		return nil, fmt.Errorf("%s on %s: %w\n%s", program(), s.Addr(), err, p.out.String())
	}
	return p, nil
}

// awaitReady polls until the process answers on addr. That the port answers is
// not enough, since it may be another server's: the process must have said
// that it listens.
func (p *process) awaitReady(addr string) error {
	deadline := time.After(startTimeout)
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for {
		out := p.out.String()
		if (strings.Contains(out, "Server initialized") || strings.Contains(out, "Sentinel ID is")) && answers(addr) {
			return nil
		}
		select {
		case <-p.done:
			return errors.New("exited")
		case <-deadline:
			return fmt.Errorf("no answer within %v", startTimeout)
		case <-poll.C:
		}
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails only if the process has ended already
	<-p.done
}

// answers reports whether a server replies to PING, be it with an error such as
// LOADING or NOAUTH.
func answers(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err = c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, _ := c.Read(make([]byte, 1))
	return n == 1
}
