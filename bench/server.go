package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// server is a redis-server of this program's own, with a connection that asks
// about it. Everything in it is immutable after startServer.
type server struct {
	addr  string
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process has ended
	admin rueidis.Client
}

// startServer starts a redis-server that persists nothing, on a free port.
func startServer() (*server, error) {
	for try := 1; ; try++ {
		// Below the ports that systems give to outgoing connections.
		s, err := startOn(12000 + rand.IntN(20000))
		if err == nil || try == 5 {
			return s, err
		}
	}
}

func startOn(port int) (*server, error) {
	s := &server{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), done: make(chan struct{})}
	s.cmd = exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--dir", os.TempDir(), "--save", "", "--appendonly", "no",
		"--slowlog-log-slower-than", strconv.Itoa(slowest), "--slowlog-max-len", "1000")
	s.cmd.SysProcAttr = dieWithParent()

	started := make(chan error)
	go func() { // ends with the process; stop waits for it
		// The parent-death signal follows the thread that forked.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait() // the status of a killed process says nothing
		}
		close(s.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	if err := s.connect(); err != nil {
		s.stop()
		return nil, fmt.Errorf("redis-server on %s: %w", s.addr, err)
	}
	return s, nil
}

// connect opens the admin connection as soon as the server answers, and makes
// sure that it is the server that was started.
func (s *server) connect() error {
	opt := options(s.addr)
	opt.ForceSingleClient, opt.PipelineMultiplex, opt.AlwaysRESP2 = true, -1, true
	for limit := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		var err error
		if s.admin, err = rueidis.NewClient(opt); err == nil {
			break
		}
		select {
		case <-s.done:
			return fmt.Errorf("ended by itself")
		default:
		}
		if time.Now().After(limit) {
			return err
		}
	}
	info, err := s.info("server")
	if err == nil && info["process_id"] != strconv.Itoa(s.cmd.Process.Pid) {
		err = fmt.Errorf("the port is another server's")
	}
	return err
}

// options are those of every client but rueidislock's, which needs the cache.
func options(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true}
}

func (s *server) do(args ...string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.admin.Do(ctx, s.admin.B().Arbitrary(args...).Build()).ToMessage()
}

// empty makes the server as good as new, but for the scripts that it knows.
func (s *server) empty() error {
	_, err := s.do("FLUSHALL")
	return err
}

// stop kills the server and waits for its end.
func (s *server) stop() {
	if s.admin != nil {
		s.admin.Close()
	}
	_ = s.cmd.Process.Kill() // fails only if the process has ended already
	<-s.done
}
