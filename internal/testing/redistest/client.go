package redistest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// adminTimeout bounds one administrator's command.
const adminTimeout = 20 * time.Second

// openTimeout bounds the tries to open a client.
const openTimeout = Patience

// AdminName is the client name of the connection on which Do and TryDo run.
const AdminName = "redistest-admin"

// Client opens a client of the server: without client-side caching and, if
// "--requirepass" was given to Start, with that password. change may alter its
// options, the address included. A machine that is too busy for a short timeout of
// theirs is asked again. The client is closed with the test, which takes a second for
// each connection whose server is still paused.
func (s *Server) Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	opt := s.options()
	if s.logIn != nil {
		s.logIn(&opt)
	}
	for _, f := range change {
		f(&opt)
	}
	if s.isClusterNode() && len(opt.InitAddress) == 1 {
		DialGiven(&opt, s.Addr())
	}
	if s.sentinels != nil && len(opt.InitAddress) == 1 {
		s.askSentinels(&opt)
	}
	c, err := rueidis.NewClient(opt)
	for end := time.Now().Add(openTimeout); tooLate(err) && time.Now().Before(end); {
		c, err = rueidis.NewClient(opt)
	}
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// Must is the result of a call that has to end well.
func Must[T any](result T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return result
	}
}

// LogIn has clients that are opened from now on log in as logIn says, unless their own
// options say otherwise. Call it before the first.
func (s *Server) LogIn(logIn func(*rueidis.ClientOption)) { s.logIn = logIn }

// DialGiven has a client dial the address that it was given, a proxy's perhaps, in place of
// the node's own, which a Redis Cluster tells its clients.
func DialGiven(o *rueidis.ClientOption, own string) {
	given, dial := o.InitAddress[0], o.DialCtxFn
	o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		if addr == own {
			addr = given
		}
		if dial != nil {
			return dial(ctx, addr, d, c)
		}
		return d.DialContext(ctx, "tcp", addr)
	}
}

func tooLate(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func (s *Server) options() rueidis.ClientOption {
	opt := rueidis.ClientOption{InitAddress: []string{s.Addr()}, DisableCache: true}
	if i := slices.Index(s.args, "--requirepass"); i >= 0 && i+1 < len(s.args) {
		opt.Password = s.args[i+1]
	}
	return opt
}

// Do runs any command as administrator, on a connection apart from all clients,
// and fails the test on an error. A nil reply is no error. It waits at most 20 s, and
// as long again while the server answers LOADING. Commands run one after the
// other: do not block the connection by a script without end.
func (s *Server) Do(t testing.TB, args ...string) *rueidis.RedisMessage {
	t.Helper()
	m, err := s.TryDo(args...)
	for end := time.Now().Add(adminTimeout); loading(err) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
		m, err = s.TryDo(args...)
	}
	require.NoError(t, err, strings.Join(args, " "))
	return &m
}

var commandStats = regexp.MustCompile(`(?m)^cmdstat_([^:]+):calls=(\d+)(?:.*rejected_calls=(\d+))?`)

// Calls is how often a server has run each command, and refused to, by its answer to INFO commandstats.
func Calls(info string) (run, refused map[string]int) {
	run, refused = map[string]int{}, map[string]int{}
	for _, m := range commandStats.FindAllStringSubmatch(info, -1) {
		run[m[1]], _ = strconv.Atoi(m[2])
		refused[m[1]], _ = strconv.Atoi(m[3])
	}
	return run, refused
}

func loading(err error) bool {
	e, ok := rueidis.IsRedisErr(err)
	return ok && e.IsLoading()
}

// TryDo is Do for commands that may fail, LOADING included, and for goroutines
// other than the test's own. A paused or dead server is an error after at most
// 5 s for the connection and 20 s for the reply.
func (s *Server) TryDo(args ...string) (rueidis.RedisMessage, error) { return s.admin.do(args) }

// admin is the administrator's connection, opened at need.
type admin struct {
	server *Server // immutable after Start
	mu     sync.Mutex
	client rueidis.Client // guarded by mu; nil until needed and after close
}

func (a *admin) do(args []string) (rueidis.RedisMessage, error) {
	c, err := a.open()
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	m, err := c.Do(ctx, c.B().Arbitrary(args...).Build()).ToMessage()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	return m, err
}

func (a *admin) open() (rueidis.Client, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		return a.client, nil
	}
	opt := a.server.options()
	opt.ClientName = AdminName
	opt.ForceSingleClient = true
	opt.PipelineMultiplex = -1 // one connection
	opt.DisableRetry = true
	c, err := rueidis.NewClient(opt)
	if err != nil {
		return nil, err
	}
	a.client = c
	return c, nil
}

func (a *admin) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil {
		a.client.Close()
		a.client = nil
	}
}

// Name is a host name, or the address of a load balancer, that stands for one server now and
// perhaps for another later. All methods may be called concurrently.
type Name struct{ addr atomic.Pointer[string] }

// NewName returns a name of the server at addr.
func NewName(addr string) *Name {
	n := new(Name)
	n.Move(addr)
	return n
}

// Move makes the name stand for another server. Connections stay where they are.
func (n *Name) Move(addr string) { n.addr.Store(&addr) }

// Dialled is a change of options by which a client dials the name, on the network that it has.
func (n *Name) Dialled(o *rueidis.ClientOption) {
	o.ForceSingleClient = true
	dial := o.DialCtxFn
	o.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, secret *tls.Config) (net.Conn, error) {
		if dial != nil {
			return dial(ctx, *n.addr.Load(), d, secret)
		}
		return d.DialContext(ctx, "tcp", *n.addr.Load())
	}
}
