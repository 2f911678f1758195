package locktest

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/internal/testing/redistest"
	"github.com/holdfast-go/holdfast/internal/testing/sim"
)

// Server is a Redis: a process, or one in virtual time.
type Server interface {
	Addr() string
	// Client opens a client of it, and Proxy a way to it, which the test closes.
	Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client
	Proxy(t testing.TB) *redistest.Proxy
	// Do and TryDo run a command as administrator; see redistest.
	Do(t testing.TB, args ...string) *rueidis.RedisMessage
	TryDo(args ...string) (rueidis.RedisMessage, error)
	Pause()
	Resume()
	Kill()
	Restart()
}

// Real is the process of a server that is one.
func Real(s Server) *redistest.Server { return s.(*redistest.Server) }

// Processes is the topology of real servers.
func Processes(all []*redistest.Server) (f Topology) {
	for _, s := range all {
		f = append(f, s)
	}
	return f
}

// Topology is the Redis that a lock kind locks on: one server, or the independent masters of
// a quorum, to which all is done alike, so that a fault of the one is a fault of them
// all.
type Topology []Server

// Start starts what the lock kind locks on.
func (k Kind) Start(t testing.TB, args ...string) (f Topology) {
	t.Helper()
	if k.Sentinels != nil {
		return Topology{k.Sentinels.Start(t, args...)}
	}
	if k.Cluster {
		s := redistest.StartClusterMaster(t, args...)
		s.AwaitClusterNode(t)
		return Topology{s}
	}
	for range max(k.Nodes, 1) {
		if k.network == nil {
			f = append(f, redistest.Start(t, args...))
			continue
		}
		require.Empty(t, args, "a real server is needed")
		f = append(f, sim.Start(t, k.network))
	}
	return f
}

// Do runs a command on all of them, and returns the first one's reply.
func (f Topology) Do(t testing.TB, args ...string) *rueidis.RedisMessage {
	t.Helper()
	m := f[0].Do(t, args...)
	for _, s := range f[1:] {
		s.Do(t, args...)
	}
	return m
}

// TryDo is Do for commands that may fail. It goes on with the others then.
func (f Topology) TryDo(args ...string) (m rueidis.RedisMessage, err error) {
	for i, s := range f {
		reply, e := s.TryDo(args...)
		if i == 0 {
			m = reply
		}
		if err == nil {
			err = e
		}
	}
	return m, err
}

func (f Topology) Each(do func(Server)) {
	for _, s := range f {
		do(s)
	}
}

func (f Topology) Kill()    { f.Each(Server.Kill) }
func (f Topology) Restart() { f.Each(Server.Restart) }
func (f Topology) Pause()   { f.Each(Server.Pause) }
func (f Topology) Resume()  { f.Each(Server.Resume) }

// Addr is the addresses of all of them, with commas between.
func (f Topology) Addr() string {
	var all []string
	f.Each(func(s Server) { all = append(all, s.Addr()) })
	return strings.Join(all, ",")
}

// Client opens a client of each. An address that change gives has as many parts as
// there are servers.
func (f Topology) Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	return f.ClientOf(t, func(i int) func(*rueidis.ClientOption) {
		return func(o *rueidis.ClientOption) {
			for _, f := range change {
				f(o)
			}
			if parts := strings.Split(o.InitAddress[0], ","); len(parts) == len(f) {
				o.InitAddress = parts[i : i+1]
			}
		}
	})
}

// ClientOf opens a client of each, with a change of its own.
func (f Topology) ClientOf(t testing.TB, change func(i int) func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	var all []rueidis.Client
	for i, s := range f {
		all = append(all, s.Client(t, change(i)))
	}
	return together(all)
}

// clients are those of several servers, passed through where one is expected: what
// is no business of a lock goes to the first.
type clients struct {
	rueidis.Client
	all []rueidis.Client
}

func together(all []rueidis.Client) rueidis.Client {
	if len(all) == 1 {
		return all[0]
	}
	return clients{all[0], all}
}

// Close closes all of them.
func (c clients) Close() {
	for _, one := range c.all {
		one.Close()
	}
}

// Clients are the clients that the suite gives to a lock kind on several servers, in the
// guise of one.
func Clients(c rueidis.Client) []rueidis.Client {
	if several, ok := c.(clients); ok {
		return several.all
	}
	return []rueidis.Client{c}
}
