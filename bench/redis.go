package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// store is a server that keeps locks, or several: Redis, or what a rival has instead.
type store interface {
	addrs() []string
	// mark begins to count what spent tells: what was executed, and the processor time.
	mark() error
	spent() (spent, error)
}

// spent is what a store did meanwhile.
type spent struct {
	calls   map[string]float64 // how often each command was executed, by its lower-case name; nil where the store does not tell
	cpu     float64            // in seconds
	longest float64            // ms for which one script blocked a server at most
}

// during is what a store did while f ran.
func during(st store, f func() error) (spent, error) {
	if err := st.mark(); err != nil {
		return spent{}, err
	}
	if err := f(); err != nil {
		return spent{}, err
	}
	return st.spent()
}

// sent is how many commands the clients of a library sent, without the PINGs by which
// rueidis watches idle connections and without what this program asks.
func (s spent) sent(library string) (n float64) {
	for name, calls := range s.calls {
		if name != "info" && name != "ping" && name != "config|resetstat" && !slices.Contains(libraries[library].inner, name) {
			n += calls
		}
	}
	return n
}

// server is a redis-server of this program's own, with a connection that asks about it.
// Everything in it is immutable after startServer, but for restart and mark.
type server struct {
	addr  string
	cmd   *exec.Cmd
	done  chan struct{} // closed when the process has ended
	admin rueidis.Client
	used  float64 // processor time at the mark, in seconds
}

// startServer starts a redis-server that persists nothing, on a free port.
func startServer() (*server, error) {
	for try := 1; ; try++ {
		s, err := startOn(strconv.Itoa(freePort()))
		if err == nil || try == 5 {
			return s, err
		}
	}
}

func startOn(port string) (*server, error) {
	s := &server{addr: net.JoinHostPort("127.0.0.1", port), done: make(chan struct{})}
	s.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1",
		"--dir", os.TempDir(), "--save", "", "--appendonly", "no", "--latency-tracking-info-percentiles", "100")
	var log bytes.Buffer // to be read when the process has ended
	s.cmd.Stdout, s.cmd.Stderr = &log, &log
	if err := launch(s.cmd, s.done); err != nil {
		return nil, fmt.Errorf("%w: redis-server: %w", errNotStarted, err)
	}
	if err := s.connect(); err != nil {
		s.stop()
		return nil, fmt.Errorf("%w: redis-server on %s: %w; its log:\n%s", errNotStarted, s.addr, err, tail(log.String()))
	}
	return s, nil
}

// connect opens the admin connection as soon as the server answers, and makes sure that it
// is the server that was started.
func (s *server) connect() error {
	opt := options(s.addr)
	opt.ForceSingleClient, opt.PipelineMultiplex, opt.AlwaysRESP2 = true, -1, true
	for limit := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		var err error
		if s.admin, err = rueidis.NewClient(opt); err == nil {
			break
		}
		select {
		case <-s.done:
			return errEnded
		default:
		}
		if time.Now().After(limit) {
			return err
		}
	}
	info, err := s.info()
	if err == nil && info["process_id"] != strconv.Itoa(s.cmd.Process.Pid) {
		err = errors.New("the port is another server's")
	}
	return err
}

// options are those of every client but rueidislock's, which needs the cache.
func options(addr string) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true}
}

func (s *server) do(args ...string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(always, patience)
	defer cancel()
	return s.admin.Do(ctx, s.admin.B().Arbitrary(args...).Build())
}

func (s *server) addrs() []string { return []string{s.addr} }

func (s *server) mark() error {
	info, err := s.info()
	if err != nil {
		return err
	}
	s.used = info.cpu()
	return s.do("CONFIG", "RESETSTAT").Error()
}

func (s *server) spent() (spent, error) {
	info, err := s.info()
	if err != nil {
		return spent{}, err
	}
	all := spent{calls: make(map[string]float64), cpu: info.cpu() - s.used, longest: info.number("latency_percentiles_usec_evalsha", "p100=") / 1000}
	for name := range info {
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			all.calls[command] = info.number(name, "calls=")
		}
	}
	return all, nil
}

// info is what INFO tells, by field.
type info map[string]string

func (s *server) info() (info, error) {
	text, err := s.do("INFO", "server", "cpu", "commandstats", "latencystats").ToString()
	fields := make(info)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, err
}

// number is what follows label in a field, up to a comma; 0 if there is none.
func (i info) number(field, label string) float64 {
	_, rest, _ := strings.Cut(i[field], label)
	rest, _, _ = strings.Cut(rest, ",")
	n, _ := strconv.ParseFloat(rest, 64)
	return n
}

// cpu is the processor time that the server has used, in seconds.
func (i info) cpu() float64 { return i.number("used_cpu_user", "") + i.number("used_cpu_sys", "") }

// empty makes the server as good as new, but for the scripts that it knows. One that has
// ended is replaced.
func (s *server) empty() error {
	if s.do("FLUSHALL").Error() == nil {
		return nil
	}
	return s.restart()
}

// restart kills the server and starts another in its place, which knows nothing. It must
// not run beside other calls.
func (s *server) restart() error {
	_, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		return err
	}
	s.stop()
	fresh, err := startOn(port)
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

// nodes are independent servers.
type nodes []*server

func startNodes(n int) (all nodes, err error) {
	for range n {
		s, err := startServer()
		if err != nil {
			all.stop()
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func (all nodes) stop() {
	for _, s := range all {
		s.stop()
	}
}

func (all nodes) addrs() (addrs []string) {
	for _, s := range all {
		addrs = append(addrs, s.addr)
	}
	return addrs
}

func (all nodes) mark() (err error) {
	for _, s := range all {
		err = errors.Join(err, s.mark())
	}
	return err
}

func (all nodes) spent() (sum spent, err error) {
	sum.calls = make(map[string]float64)
	for _, s := range all {
		one, failed := s.spent()
		err = errors.Join(err, failed)
		for name, n := range one.calls {
			sum.calls[name] += n
		}
		sum.cpu += one.cpu
		sum.longest = max(sum.longest, one.longest)
	}
	return sum, err
}
