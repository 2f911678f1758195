package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// server is a redis-server of this program's own, with a connection that asks
// about it. Everything in it is immutable after startServer, but for restart.
type server struct {
	addr  string
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process has ended
	admin rueidis.Client
}

// startServer starts a redis-server that persists nothing, on a free port.
func startServer() (*server, error) {
	for try := 1; ; try++ {
		s, err := startOn(freePort())
		if err == nil || try == 5 {
			return s, err
		}
	}
}

// freePort is one that is probably free, below those that systems give to
// outgoing connections.
func freePort() int { return 12000 + rand.IntN(20000) }

func startOn(port int) (*server, error) {
	s := &server{addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), done: make(chan struct{})}
	s.cmd = exec.Command("redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--dir", os.TempDir(), "--save", "", "--appendonly", "no",
		"--slowlog-log-slower-than", strconv.Itoa(slowest), "--slowlog-max-len", "1000")
	var log bytes.Buffer // to be read when the process has ended
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	s.cmd.SysProcAttr = dieWithParent()

	if err := launch(s.cmd, s.done); err != nil {
		return nil, fmt.Errorf("redis-server: %w", err)
	}
	if err := s.connect(); err != nil {
		s.stop()
		return nil, fmt.Errorf("redis-server on %s: %w; its log:\n%s", s.addr, err, tail(log.String()))
	}
	return s, nil
}

func (s *server) address() string { return s.addr }

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

// restart kills the server and starts another in its place, which knows nothing. It
// must not run beside other calls.
func (s *server) restart() error {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	s.stop()
	fresh, err := startOn(number)
	if err != nil {
		return err
	}
	*s = *fresh
	return nil
}

// stop kills the server and waits for its end.
func (s *server) stop() {
	if s.admin != nil {
		s.admin.Close()
	}
	_ = s.cmd.Process.Kill() // fails only if the process has ended already
	<-s.done
}
