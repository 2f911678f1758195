package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// store is one server that keeps locks, or several: Redis, or what a rival has instead.
type store interface {
	addrs() []string
	// mark sets to zero what spent returns.
	mark() error
	spent() (spent, error)
}

// spent is what a store did since its mark.
type spent struct {
	calls   map[string]float64 // how often each command was executed, by its lower-case name; nil if the store does not say
	cpu     float64            // processor time, in seconds
	longest float64            // the longest time for which a script blocked a server, in ms
}

// during returns what a store did while f ran.
func during(st store, f func() error) (spent, error) {
	if err := st.mark(); err != nil {
		return spent{}, err
	}
	if err := f(); err != nil {
		return spent{}, err
	}
	return st.spent()
}

// notSent are what this program asks, the PINGs by which rueidis watches idle connections, and
// the answers of replicas.
var notSent = []string{"info", "config|resetstat", "ping", "replconf"}

// sent returns how many commands the clients of a library sent.
func (s spent) sent(library string) (n float64) {
	for name, calls := range s.calls {
		if !slices.Contains(notSent, name) && !slices.Contains(libraries[library].inner, name) {
			n += calls
		}
	}
	return n
}

// server is a redis-server that this program has started, with a connection for questions
// about it. Only restart and mark change it.
type server struct {
	*process
	addr  string
	admin rueidis.Client
	used  float64 // processor time at the mark, in seconds
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

// startOn returns when the server answers and is certainly the one that was started.
func startOn(port string) (s *server, err error) {
	s = &server{addr: net.JoinHostPort("127.0.0.1", port)}
	cmd := exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1",
		"--dir", os.TempDir(), "--save", "", "--appendonly", "no", "--latency-tracking-info-percentiles", "100")
	s.process, err = serve(cmd, func() (err error) {
		if err := s.connect(); err != nil {
			return err
		}
		info, err := s.info()
		if err == nil && info["process_id"] != strconv.Itoa(cmd.Process.Pid) {
			err = errors.New("another server has the port")
		}
		if err != nil {
			s.admin.Close()
		}
		return err
	})
	return s, err
}

// connect opens the connection for questions.
func (s *server) connect() (err error) {
	opt := options(s.addr)
	opt.ForceSingleClient, opt.PipelineMultiplex, opt.AlwaysRESP2 = true, -1, true
	s.admin, err = rueidis.NewClient(opt)
	return err
}

// options returns the options of every client but rueidislock's, which needs the cache.
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

// info is the reply of INFO, by field.
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

// number returns what follows label in a field, up to a comma; 0 if there is none.
func (i info) number(field, label string) float64 {
	_, rest, _ := strings.Cut(i[field], label)
	rest, _, _ = strings.Cut(rest, ",")
	n, _ := strconv.ParseFloat(rest, 64)
	return n
}

// cpu returns the processor time that the server has used, in seconds.
func (i info) cpu() float64 { return i.number("used_cpu_user", "") + i.number("used_cpu_sys", "") }

// empty makes the server as good as new, except that it still knows scripts. One that has
// ended is replaced.
func (s *server) empty() error {
	if s.do("FLUSHALL").Error() == nil {
		return nil
	}
	return s.restart()
}

// restart kills the server and starts an empty one in its place. It must not run beside
// other calls.
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

func (s *server) stop() {
	s.admin.Close()
	s.kill()
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
