package locktest

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Topology is the Redis that a lock kind locks on: one server, or the independent masters of
// a quorum, to which all is done alike, so that a fault of the one is a fault of them
// all.
type Topology []*redistest.Server

// Start starts what the lock kind locks on.
func (d Kind) Start(t testing.TB, args ...string) (f Topology) {
	t.Helper()
	if d.Sentinels != nil {
		return Topology{d.Sentinels.Start(t, args...)}
	}
	if d.Cluster {
		s := redistest.StartClusterMaster(t, args...)
		s.AwaitClusterNode(t)
		return Topology{s}
	}
	for range max(d.Nodes, 1) {
		f = append(f, redistest.Start(t, args...))
	}
	return f
}

// Do runs a command on all of them, and returns the first one's reply.
func (f Topology) Do(t testing.TB, args ...string) rueidis.RedisMessage {
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
		said, e := s.TryDo(args...)
		if i == 0 {
			m = said
		}
		if err == nil {
			err = e
		}
	}
	return m, err
}

func (f Topology) Each(do func(*redistest.Server)) {
	for _, s := range f {
		do(s)
	}
}

func (f Topology) Kill()    { f.Each((*redistest.Server).Kill) }
func (f Topology) Restart() { f.Each((*redistest.Server).Restart) }
func (f Topology) Pause()   { f.Each((*redistest.Server).Pause) }
func (f Topology) Resume()  { f.Each((*redistest.Server).Resume) }

// Addr is the addresses of all of them, with commas between.
func (f Topology) Addr() string {
	var all []string
	f.Each(func(s *redistest.Server) { all = append(all, s.Addr()) })
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
